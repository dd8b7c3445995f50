// Sinkhorn Transformer (Tay et al. 2020, arXiv:2002.11296, section 3): the sequence is cut into
// blocks; a sort network turns the sum of each block into logits over all blocks, and Sinkhorn
// normalization turns these into a soft permutation S. Keys and values are permuted by blocks,
// block n receiving sum_l S_nl block_l, and a query attends, in one softmax, to its own block and
// to the sorted block at the same position.
//
// Rulings. The sort network is linear and of each head: logits_n = W_h (sum of the keys of block
// n), the form the benchmark's authors use, without a bias: it would add the same to a whole
// column, which the normalization divides out again. Gumbel noise is added while training; all is
// divided by the temperature. Padded keys and values are zeros in the sums and in the permutation,
// and blocks without a token take no part in the normalization. Row r of a sorted block is the
// weighted sum of the rows r of all blocks, so the padded rows of a block that is partly padding
// (the last) add nothing to it; it can be attended if any block has a token there. Attention
// dropout of the sorted blocks and of the own ones: the operator's, with derive_key(context.key,
// kDropout, part). There is no causal variant: LRA needs encoders.
//
// The released code does not sort (docs/deviations.md, 10).
#include "ops/sinkhorn.h"
#include "base/rng.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/sinkhorn.h"
#include "ops/attention/attention.h"
#include "ops/precision.h"
#include "ops/product.h"
#include "ops/token_blocks.h"

namespace lra::mixers {
namespace {

// The two attentions, as places of randomness.
enum SinkhornPart : uint32_t { kSorted = 0, kOwn = 1 };

class Sinkhorn : public SelfAttention {
 public:
  using Config = SinkhornConfig;

  Sinkhorn(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : SelfAttention(init, shape), config_(config) {
    // A longer block holds the same tokens, and padding.
    config_.block = std::min(config.block, shape.max_length);
    const int64_t max_blocks = (shape.max_length + config_.block - 1) / config_.block;
    std::vector<at::Tensor> heads;
    for (int64_t h = 0; h < shape.attention.heads; ++h) {
      heads.push_back(
          init.of("sort." + std::to_string(h)).xavier(max_blocks, shape.attention.head_dim));
    }
    sort_HNE_ = register_parameter("sort", at::stack(heads));
  }

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const int64_t blocks = (x_BLD.size(1) + config_.block - 1) / config_.block;
    LRA_CHECK_LE(blocks, sort_HNE_.size(1));
    // A split, and not parts that overlap: the gradients of such are padded copies.
    const auto split = qkv_->forward(x_BLD).split_with_sizes({1, 2}, 2);
    const at::Tensor q_BLHE = split[0].squeeze(2), &kv_BL2HE = split[1];
    const at::Tensor mask_BNb = mask_of_blocks(x_BLD, context.mask_BL, blocks);
    // [B, H, N, b * 2 * E]
    const at::Tensor own = ops::token_blocks(kv_BL2HE, context.mask_BL, config_.block);
    const at::Tensor sorted =
        ops::product(ops::beside(permutation(own, mask_BNb, context), own), own);
    // [B, H, N, b * 2 * E] -> two of [B, N b, H, E]
    const auto sorted_kv =
        sorted.unflatten(3, {config_.block, 2, -1}).flatten(2, 3).transpose(1, 2).unbind(3);
    const auto own_kv = kv_BL2HE.unbind(2);
    const ops::AttentionPattern pattern = ops::diagonal_pattern(x_BLD.size(1), config_.block);
    const auto part = [&](const auto& kv, const at::Tensor& mask, SinkhornPart which) {
      return ops::AttentionPart{kv[0],
                                kv[1],
                                pattern,
                                {mask, context.mask_BL},
                                layers::attention_dropout(context, which)};
    };
    return output_->forward(ops::joint_attention(
        q_BLHE,
        {part(own_kv, context.mask_BL, kOwn), part(sorted_kv, sorted_mask(mask_BNb), kSorted)}));
  }

 private:
  // Rows of the blocks that hold a token, uint8 [B, N, b]; undefined if it would hide nothing. In a
  // batch without padding all blocks but the last are full: each has a token, and every row of a
  // sorted block can be seen.
  at::Tensor mask_of_blocks(const at::Tensor& x_BLD, at::Tensor mask_BL, int64_t blocks) const {
    const int64_t batch = x_BLD.size(0), missing = blocks * config_.block - x_BLD.size(1);
    if (!mask_BL.defined() && (missing == 0 || blocks > 1)) return {};
    if (!mask_BL.defined()) {
      mask_BL = at::ones({batch, x_BLD.size(1)}, x_BLD.options().dtype(at::kByte));
    }
    return at::constant_pad_nd(mask_BL, {0, missing}).view({batch, blocks, config_.block});
  }

  // S [B, H, N, N] from keys and values in blocks; float32 for bfloat16.
  at::Tensor permutation(const at::Tensor& own, const at::Tensor& mask_BNb,
                         const layers::Context& context) const {
    const int64_t blocks = own.size(2);
    const at::Tensor keys = own.unflatten(3, {config_.block, 2, -1}).select(4, 0);
    const at::Tensor weight_HEN = sort_HNE_.narrow(1, 0, blocks).transpose(1, 2);
    at::Tensor logits = ops::product(keys.sum(3, false, ops::wide_type(keys)),
                                     weight_HEN.unsqueeze(0).expand({own.size(0), -1, -1, -1}));
    if (context.training && config_.noise) {
      const uint64_t key = derive_key(context.key, RandomUse::kMixer);
      logits = logits + ops::gumbel_noise_like(logits, key);
    }
    const at::Tensor valid_BN = mask_BNb.defined() ? mask_BNb.any(-1) : at::Tensor();
    return ops::sinkhorn(logits / config_.temperature,
                         valid_BN.defined() ? valid_BN.to(at::kBool) : valid_BN,
                         config_.iterations);
  }

  // Rows of the sorted blocks that can be seen, uint8 [B, N b]; undefined: all.
  static at::Tensor sorted_mask(const at::Tensor& mask_BNb) {
    if (!mask_BNb.defined()) return {};
    return mask_BNb.amax(1, true).expand_as(mask_BNb).flatten(1).contiguous();
  }

  Config config_;
  at::Tensor sort_HNE_;
};

}  // namespace

constinit const LayerMaker kMakeSinkhorn = make_layer<Sinkhorn>;

}  // namespace lra::mixers
