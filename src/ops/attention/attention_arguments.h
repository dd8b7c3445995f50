// All arguments of attention, as one value from mixer to kernel. The dispatcher carries it as the
// arguments of one schema, which are listed only here.
#pragma once

#include "ops/attention/attention.h"
#include "ops/boxed.h"

namespace lra::ops {

// q [B, L, H, E], k [B, S, H, E], v [B, S, H, V], bias [H, L, S], [H, L + S - 1] or undefined; or
// their gradients.
struct AttentionInputs {
  Tensor q, k, v, bias;
};

struct AttentionArguments {
  AttentionInputs in = {};
  AttentionPattern pattern = {};
  AttentionMask mask = {};
  AttentionDropout dropout = {};
  double scale = 0;
  AttentionWeights weights = AttentionWeights::kSoftmax;
  // True if the softmax covers other keys too, or if the caller reads it.
  bool is_part = false;

  double effective_scale() const {
    return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(in.q.size(3)));
  }
};

// The schemas of all arguments of every operator except q, k and v (`sizes` is {query_block,
// key_block, left, right}), of attention for Python, and of a whole AttentionArguments.
#define LRA_ATTENTION_OPTIONS_SCHEMA                                                  \
  "Tensor? key_mask=None, Tensor? query_mask=None, Tensor? offsets=None, Tensor? "    \
  "key_blocks=None, Tensor? runs=None, int[] sizes=[0, 0, -1, -1], float scale=0.0, " \
  "float dropout=0.0, int key=0"
#define LRA_ATTENTION_SCHEMA                                    \
  "Tensor q, Tensor k, Tensor v, " LRA_ATTENTION_OPTIONS_SCHEMA \
  ", Tensor? bias=None, bool laplace=False"
#define LRA_ATTENTION_CALL_SCHEMA LRA_ATTENTION_SCHEMA ", bool is_part=False"
inline constexpr size_t kNumAttentionValues = 15;

inline Stack values_of(const AttentionArguments& a) {
  const AttentionPattern& p = a.pattern;
  return {a.in.q,
          a.in.k,
          a.in.v,
          optional_tensor(a.mask.keys),
          optional_tensor(a.mask.queries),
          optional_tensor(p.offsets),
          optional_tensor(p.key_blocks),
          optional_tensor(p.runs),
          std::vector<int64_t>{p.query_block, p.key_block, p.left, p.right},
          a.scale,
          a.dropout.rate,
          static_cast<int64_t>(a.dropout.key),
          optional_tensor(a.in.bias),
          a.weights == AttentionWeights::kLaplace,
          a.is_part};
}

// The first values of an operator; those that a schema does not have are as in the struct.
inline AttentionArguments attention_arguments(Values values) {
  const auto sizes = values[8].toIntVector();
  LRA_CHECK_EQ(sizes.size(), size_t{4});
  return {.in = {values[0].toTensor(), values[1].toTensor(), values[2].toTensor(),
                 values.size() > 12 ? tensor_or_undefined(values[12]) : Tensor()},
          .pattern = {.offsets = tensor_or_undefined(values[5]),
                      .key_blocks = tensor_or_undefined(values[6]),
                      .query_block = sizes[0],
                      .key_block = sizes[1],
                      .left = sizes[2],
                      .right = sizes[3],
                      .runs = tensor_or_undefined(values[7])},
          .mask = {tensor_or_undefined(values[3]), tensor_or_undefined(values[4])},
          .dropout = {values[10].toDouble(), static_cast<uint64_t>(values[11].toInt())},
          .scale = values[9].toDouble(),
          .weights = values.size() > 13 && values[13].toBool() ? AttentionWeights::kLaplace
                                                               : AttentionWeights::kSoftmax,
          .is_part = values.size() > 14 && values[14].toBool()};
}

// Results of a forward pass: out [B, L, H, V], and softmax [2, B, H, L] in the accumulator dtype,
// the largest score of each row and its sum relative to that (kernels::SoftmaxRows). Unless
// is_part, softmax may hold another tensor, for the backward pass on the same device only.
struct AttentionResults {
  Tensor out, softmax;
};
AttentionResults attention_forward(const AttentionArguments& arguments);

// The same by the definition, L x S numbers at a time, and differentiable any number of times;
// lra::Error with sorted runs.
PartialAttention composed_attention(const AttentionArguments& arguments);

// Tensors that a backward pass takes besides the arguments of the forward pass, and those it
// writes.
struct AttentionBackwardArguments {
  Tensor grad, grad_logsumexp;  // the second, float32 with bfloat16, may be undefined
  Tensor out, softmax;
  AttentionInputs to;  // overwritten; bias is undefined without one
};
void attention_backward(const AttentionArguments& arguments, const AttentionBackwardArguments& b);

// The same as the operators' values: those of the arguments, then these.
inline AttentionBackwardArguments attention_backward_arguments(Values values) {
  LRA_CHECK_EQ(values.size(), kNumAttentionValues + 8);
  const Values own = values.slice(kNumAttentionValues);
  return {own[0].toTensor(),
          tensor_or_undefined(own[1]),
          own[2].toTensor(),
          own[3].toTensor(),
          {own[4].toTensor(), own[5].toTensor(), own[6].toTensor(), tensor_or_undefined(own[7])}};
}

}  // namespace lra::ops
