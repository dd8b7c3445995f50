// Sparse Transformer attention (Child et al. 2019, arXiv:1904.10509, section 4.3) with stride l.
// The two patterns of a factorization are taken together in every head (section 5.1, merged heads).
//
//   fixed    token i sees its own block of l tokens, and the last c tokens of every block
//   strided  token i sees the l tokens before it, and every l-th token counted from itself
//
// The paper's patterns are causal, for generation. This is an encoder, so by default they have no
// direction: every block's last c tokens, and both sides of a token. With `causal` they are the
// paper's. With `global_first` the first token, CLS, sees all and is seen by all, and the pattern
// covers the tokens after it, as in the benchmark authors' code.
//
// Each set of keys is a part of one joint softmax, and the parts share no key; the cost is L (l + c
// L / l), or L (l + L / l) for strided. The stride takes the tokens sorted by their position modulo
// l and leaves the token itself to the window, which in turn is one shorter than the paper's: its
// last token is in the stride.
//
// Attention dropout of part n: the operator's, with derive_key(context.key, kDropout, n).
#include <cmath>

#include "mixers/sequence_layer.h"
#include "mixers/specs/sparse_transformer.h"
#include "ops/attention/attention.h"
#include "ops/sorted_runs.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// One call of attention each.
enum SparsePart : uint32_t { kNear = 0, kFar = 1, kToFirst = 2, kFromFirst = 3, kFirstToFirst = 4 };

struct Rows {
  Tensor q_BLHE, k_BLHE, v_BLHE, mask_BL;

  Rows(const Tensor& qkv_BL3HE, const Tensor& mask) : mask_BL(mask) {
    const auto parts = qkv_BL3HE.unbind(2);
    q_BLHE = parts[0], k_BLHE = parts[1], v_BLHE = parts[2];
  }
  int64_t length() const { return q_BLHE.size(1); }
};

// Lets each block of `stride` queries see the other blocks' groups of `summary` keys; causal: only
// the earlier ones. (L / stride)^2 numbers at most, which for a stride near sqrt(L) is L.
ops::AttentionPattern summary_pattern(int64_t length, int64_t stride, int64_t summary,
                                      bool causal) {
  const int64_t blocks = (length + stride - 1) / stride;
  const int64_t groups = (length + summary - 1) / stride;  // blocks that reach their summary
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> lists;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t group = 0; group < (causal ? std::min(block, groups) : groups); ++group) {
      if (group != block) lists.push_back(static_cast<int32_t>(group));
    }
    offsets.push_back(static_cast<int64_t>(lists.size()));
  }
  ops::AttentionPattern pattern;
  pattern.offsets = at::tensor(offsets, at::kLong);
  pattern.key_blocks = at::tensor(lists, at::kInt);
  pattern.query_block = stride;
  pattern.key_block = summary;
  return pattern;
}

class SparseTransformer : public SelfAttention {
 public:
  using Config = SparseTransformerConfig;

  SparseTransformer(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : SelfAttention(init, shape), config_(config) {
    const auto length = static_cast<double>(shape.max_length - (config.global_first ? 1 : 0));
    if (config.stride == 0) {
      config_.stride = std::max(1L, std::lround(std::sqrt(length)));
      config_.summary = std::min(config_.summary, config_.stride);
    }
    if (config_.pattern == "fixed" && config_.summary > config_.stride) {
      throw Error({.where = "mixer.summary",
                   .what = std::to_string(config_.summary) + " tokens of blocks of " +
                           std::to_string(config_.stride),
                   .expected = "at most mixer.stride"});
    }
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const Tensor qkv_BL3HE = qkv_->forward(x_BLD);
    if (config_.global_first) return output_->forward(with_global_first(qkv_BL3HE, context));
    const Rows rows(qkv_BL3HE, context.mask_BL);
    return output_->forward(ops::joint_attention(rows.q_BLHE, pattern_parts(rows, context)));
  }

 private:
  // `qkv` begins at token `first`.
  static Rows rows_of(const Tensor& qkv_BL3HE, const Tensor& mask_BL, int64_t first) {
    const int64_t length = qkv_BL3HE.size(1);
    return {qkv_BL3HE, mask_BL.defined() ? mask_BL.narrow(1, first, length).contiguous() : mask_BL};
  }

  // One split instead of narrowed tensors, each of whose gradients would be a padded copy.
  Tensor with_global_first(const Tensor& qkv_BL3HE, const layers::Context& context) const {
    const int64_t others = qkv_BL3HE.size(1) - 1;
    const auto split = qkv_BL3HE.split_with_sizes({1, others}, 1);
    const Rows first = rows_of(split[0], context.mask_BL, 0);
    const auto seen_by = [&](const Rows& queries, const Rows& keys, SparsePart part) {
      return ops::AttentionPart{.k_BSHE = keys.k_BLHE,
                                .v_BSHE = keys.v_BLHE,
                                .mask = {keys.mask_BL, queries.mask_BL},
                                .dropout = layers::attention_dropout(context, part)};
    };
    if (others == 0)
      return ops::joint_attention(first.q_BLHE, {seen_by(first, first, kFirstToFirst)});
    const Rows rest = rows_of(split[1], context.mask_BL, 1);
    auto parts = pattern_parts(rest, context);
    parts.push_back(seen_by(rest, first, kToFirst));
    return at::cat({ops::joint_attention(first.q_BLHE, {seen_by(first, first, kFirstToFirst),
                                                        seen_by(first, rest, kFromFirst)}),
                    ops::joint_attention(rest.q_BLHE, parts)},
                   1);
  }

  std::vector<ops::AttentionPart> pattern_parts(const Rows& rows,
                                                const layers::Context& context) const {
    std::vector<ops::AttentionPart> parts = {near(rows, layers::attention_dropout(context, kNear))};
    if (rows.length() <= config_.stride) return parts;
    const auto far = layers::attention_dropout(context, kFar);
    parts.push_back(config_.pattern == "fixed" ? summaries(rows, far) : stride(rows, far));
    return parts;
  }

  // The own block, or the window.
  ops::AttentionPart near(const Rows& rows, const ops::AttentionDropout& dropout) const {
    ops::AttentionPattern pattern;
    if (config_.pattern == "fixed") {
      pattern = ops::diagonal_pattern(rows.length(), config_.stride);
    } else {
      pattern.left = pattern.right = config_.stride - 1;
    }
    if (config_.causal) pattern.right = 0;
    return {rows.k_BLHE, rows.v_BLHE, pattern, {rows.mask_BL, rows.mask_BL}, dropout};
  }

  // The last tokens of the other blocks.
  ops::AttentionPart summaries(const Rows& rows, const ops::AttentionDropout& dropout) const {
    const ops::PeriodicRows chosen{config_.stride, config_.stride - config_.summary,
                                   config_.stride};
    const Tensor mask =
        rows.mask_BL.defined() ? chosen.of(rows.mask_BL).contiguous() : rows.mask_BL;
    return {rows.k_BLHE,
            rows.v_BLHE,
            summary_pattern(rows.length(), config_.stride, config_.summary, config_.causal),
            {mask, rows.mask_BL},
            dropout,
            chosen};
  }

  // Every stride-th token but the token itself.
  ops::AttentionPart stride(const Rows& rows, const ops::AttentionDropout& dropout) const {
    const int64_t batch = rows.q_BLHE.size(0), heads = rows.q_BLHE.size(2);
    Tensor residue_BL = at::arange(rows.length(), rows.q_BLHE.options().dtype(at::kInt))
                            .remainder(config_.stride)
                            .unsqueeze(0)
                            .expand({batch, -1});
    if (rows.mask_BL.defined())
      residue_BL = residue_BL.masked_fill(rows.mask_BL.eq(0), config_.stride);
    const Tensor buckets =
        residue_BL.unsqueeze(1).expand({-1, heads, -1}).unsqueeze(0).contiguous();
    ops::AttentionPattern pattern;
    pattern.runs =
        ops::sorted_runs(buckets, config_.stride, {.chunk = 0, .causal = config_.causal})[0];
    return {rows.k_BLHE, rows.v_BLHE, pattern, {}, dropout};
  }

  Config config_;
};

}  // namespace

constinit const LayerMaker kMakeSparseTransformer = make_layer<SparseTransformer>;

}  // namespace lra::mixers
