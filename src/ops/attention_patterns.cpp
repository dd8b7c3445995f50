// What is built around the attention operator: patterns, and the union of several calls.
#include "ops/attention.h"
#include "ops/precision.h"

namespace lra::ops {

using at::Tensor;

Tensor merge_attention(const std::vector<PartialAttention>& parts) {
  std::vector<Tensor> logsumexps;
  for (const PartialAttention& part : parts) logsumexps.push_back(part.logsumexp_BHL);
  const Tensor all_NBHL = at::stack(logsumexps);
  const Tensor most = all_NBHL.detach().amax(0);
  // Where no part saw a key every weight is exp(-infinity - 0) = 0.
  const Tensor shares_NBHL = (all_NBHL - most.masked_fill(most.isinf(), 0)).exp();
  const Tensor sum_BHL = shares_NBHL.sum(0).masked_fill(most.isinf(), 1);
  const Tensor weights_NBLH1 =
      beside((shares_NBHL / sum_BHL).transpose(2, 3).unsqueeze(-1), parts[0].out_BLHE);
  Tensor out = parts[0].out_BLHE * weights_NBLH1[0];
  for (size_t n = 1; n < parts.size(); ++n) {
    out = out + parts[n].out_BLHE * weights_NBLH1[static_cast<int64_t>(n)];
  }
  return out;
}

AttentionPattern diagonal_pattern(int64_t length, int64_t block) {
  const int64_t num_blocks = (length + block - 1) / block;
  return {.offsets = at::arange(num_blocks + 1, at::kLong),
          .key_blocks = at::arange(num_blocks, at::kInt),
          .query_block = block,
          .key_block = block};
}

}  // namespace lra::ops
