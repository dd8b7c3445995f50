#include "ops/attention/dense_attention.h"

#include <numbers>

#include "base/rng.h"

namespace lra::ops {
namespace {

// Far below every score, yet finite: a row without a key becomes uniform and is then zeroed.
constexpr double kHidden = -1e30;

}  // namespace

Tensor pattern_allows(const AttentionPattern& pattern, int64_t heads, int64_t queries,
                      int64_t keys) {
  Tensor allowed = at::ones({1, heads, queries, keys}, at::kBool);
  const Tensor i = at::arange(queries).unsqueeze(1), j = at::arange(keys).unsqueeze(0);
  if (pattern.left >= 0) allowed = allowed & j.ge(i - pattern.left);
  if (pattern.right >= 0) allowed = allowed & j.le(i + pattern.right);
  if (!pattern.offsets.defined()) return allowed;
  const int64_t query_blocks = (queries + pattern.query_block - 1) / pattern.query_block;
  const int64_t lists = (pattern.offsets.numel() - 1) / query_blocks;
  const int64_t batch = std::max<int64_t>(1, lists / heads);
  Tensor listed = at::zeros({batch, heads, queries, keys}, at::kBool);
  for (int64_t plane = 0; plane < batch * heads; ++plane) {
    for (int64_t query = 0; query < queries; ++query) {
      const int64_t row = (lists == 1 ? 0 : plane) * query_blocks + query / pattern.query_block;
      const int64_t end = pattern.offsets[row + 1].item<int64_t>();
      for (int64_t n = pattern.offsets[row].item<int64_t>(); n < end; ++n) {
        const int64_t first = pattern.key_blocks[n].item<int32_t>() * pattern.key_block;
        const int64_t count = std::min(pattern.key_block, keys - first);
        listed[plane / heads][plane % heads][query].narrow(0, first, count).fill_(true);
      }
    }
  }
  return allowed & listed;
}

Tensor masks_allow(Tensor allowed, const AttentionMask& mask) {
  if (mask.keys.defined()) allowed = allowed & mask.keys.to(at::kBool).unsqueeze(1).unsqueeze(1);
  if (mask.queries.defined()) {
    allowed = allowed & mask.queries.to(at::kBool).unsqueeze(1).unsqueeze(-1);
  }
  return allowed;
}

Tensor attention_dropout_factors(at::IntArrayRef shape_BHLS, const AttentionDropout& dropout) {
  Tensor t = at::empty(shape_BHLS, at::kDouble);
  double* out = t.mutable_data_ptr<double>();
  const int64_t planes = shape_BHLS[0] * shape_BHLS[1];
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t i = 0; i < shape_BHLS[2]; ++i) {
      for (int64_t j = 0; j < shape_BHLS[3]; ++j) {
        const uint32_t value = dropout_value(dropout.key, static_cast<uint32_t>(plane),
                                             static_cast<uint32_t>(i), static_cast<uint32_t>(j));
        *out++ = value < dropout_threshold(dropout.rate) ? 0.0 : dropout_scale(dropout.rate);
      }
    }
  }
  return t;
}

Tensor dense_scores(const Tensor& q, const Tensor& k, double scale, const Tensor& bias) {
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
  const Tensor scores = scale * at::einsum("blhe,bshe->bhls", {q, k});
  return bias.defined() ? scores + bias : scores;
}

Tensor table_of_bias(const Tensor& bias, int64_t queries, int64_t keys) {
  if (!bias.defined() || bias.dim() == 3) return bias;
  // Windows of the numbers, the last row's first.
  LRA_CHECK_EQ(bias.size(1), queries + keys - 1);
  return bias.unfold(1, keys, 1).flip(1);
}

Tensor laplace(const Tensor& scores) {
  return 0.5 * (1 + at::erf((scores - std::sqrt(0.5)) * std::sqrt(2 * std::numbers::pi)));
}

Tensor dense_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& allowed,
                       const AttentionDropout& dropout, double scale, const Tensor& bias,
                       AttentionWeights kind) {
  const Tensor scores = dense_scores(q, k, scale, bias);
  Tensor weights = kind == AttentionWeights::kLaplace
                       ? laplace(scores).masked_fill(~allowed, 0)
                       : scores.masked_fill(~allowed, kHidden).softmax(-1) * allowed;
  if (dropout.rate > 0) {
    weights = weights * attention_dropout_factors(weights.sizes(), dropout).to(weights.options());
  }
  return at::einsum("bhls,bshe->blhe", {weights, v});
}

Tensor dense_logsumexp(const Tensor& scores_BHLS, const Tensor& allowed) {
  const Tensor sums = scores_BHLS.masked_fill(~allowed, kHidden).logsumexp(-1);
  return sums.masked_fill(~allowed.any(-1), -INFINITY);
}

}  // namespace lra::ops
