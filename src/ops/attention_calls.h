// Calls of the attention operators through the dispatcher, for the autograd functions around them.
#pragma once

#include "ops/attention.h"
#include "ops/attention_problem.h"
#include "ops/dispatch.h"

namespace lra::ops {

// Everything besides q, k and v, in the order of the schemas. `sizes` is {query_block, key_block,
// left, right}.
struct AttentionOptions {
  OptTensor key_mask, query_mask, offsets, key_blocks, runs;
  std::vector<int64_t> sizes;
  double scale = 0, rate = 0;
  int64_t key = 0;
  // True if the softmax covers other keys too, or if the caller reads it: then it must be [2, B, H,
  // L].
  bool is_part = false;
};

using AttentionForwardOp = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                              const at::Tensor&,
                                                              LRA_ATTENTION_OPTION_TYPES,
                                                              const OptTensor&, bool);
using AttentionBackwardOp = void(const at::Tensor&, const OptTensor&, const at::Tensor&,
                                 const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                 const at::Tensor&, LRA_ATTENTION_OPTION_TYPES, const OptTensor&,
                                 at::Tensor&, at::Tensor&, at::Tensor&, const OptTensor&);

// Returns out and softmax: [2, B, H, L], the largest score of each row and the sum relative to it
// (kernels::SoftmaxRows). If only a backward pass on the same device reads the second, it may be
// another tensor.
inline std::tuple<at::Tensor, at::Tensor> call_attention_forward(const at::Tensor& q,
                                                                 const at::Tensor& k,
                                                                 const at::Tensor& v,
                                                                 const AttentionOptions& o,
                                                                 const OptTensor& bias = {}) {
  static const auto op = find_op<AttentionForwardOp>("lra::attention_forward");
  return op.call(q, k, v, o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs, o.sizes,
                 o.scale, o.rate, o.key, bias, o.is_part);
}

struct AttentionOutputGradients {
  at::Tensor out, logsumexp;  // undefined: none
};

struct AttentionInputGradients {
  at::Tensor q, k, v, bias;  // bias may be undefined
};

inline void call_attention_backward(const AttentionOutputGradients& grads, const at::Tensor& q,
                                    const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                    const at::Tensor& softmax, const AttentionOptions& o,
                                    const OptTensor& bias, AttentionInputGradients to) {
  static const auto op = find_op<AttentionBackwardOp>("lra::attention_backward");
  const at::Tensor grad = grads.out.defined() ? grads.out : at::zeros_like(out);
  op.call(grad, optional_tensor(grads.logsumexp), q, k, v, out, softmax, o.key_mask, o.query_mask,
          o.offsets, o.key_blocks, o.runs, o.sizes, o.scale, o.rate, o.key, bias, to.q, to.k, to.v,
          optional_tensor(to.bias));
}

inline AttentionOptions attention_options(const AttentionPattern& pattern,
                                          const AttentionMask& mask,
                                          const AttentionDropout& dropout, double scale,
                                          bool is_part = false) {
  return {.key_mask = optional_tensor(mask.keys),
          .query_mask = optional_tensor(mask.queries),
          .offsets = optional_tensor(pattern.offsets),
          .key_blocks = optional_tensor(pattern.key_blocks),
          .runs = optional_tensor(pattern.runs),
          .sizes = {pattern.query_block, pattern.key_block, pattern.left, pattern.right},
          .scale = scale,
          .rate = dropout.rate,
          .key = static_cast<int64_t>(dropout.key),
          .is_part = is_part};
}

}  // namespace lra::ops
