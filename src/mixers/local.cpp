// Local attention as the benchmark defines it (Tay et al. 2021, appendix B.1): the sequence is cut
// into contiguous blocks that do not overlap, and a token attends only to its own block. The last
// block may be short.
//
// groups = "strided" is what the released code computes instead: token t belongs to group t mod
// (floor(Lmax / block) + 1), so that a group holds at most `block` tokens, spread over the whole
// sequence: one group more than needed if `block` divides Lmax, as in the release. Lmax, not L, as
// the release pads: groups must not depend on the rest of a batch. Its misplaced mask and its
// attended rounding rows are not reproduced (docs/deviations.md, 4 and 5).
#include "mixers/specs/local.h"
#include "mixers/sequence_layer.h"
#include "ops/attention/attention.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// Sorts rows of t [B, num_groups * block, ...] by group, and back. The groups are a transposed
// view, so that the gradient is a copy too.
Tensor gather_groups(const Tensor& t, int64_t num_groups) {
  return t.unflatten(1, {t.size(1) / num_groups, num_groups}).transpose(1, 2).flatten(1, 2);
}

Tensor scatter_groups(const Tensor& t, int64_t num_groups) {
  return gather_groups(t, t.size(1) / num_groups);
}

class Local : public SelfAttention {
 public:
  using Config = LocalConfig;

  Local(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : SelfAttention(init, shape), config_(config) {
    num_groups_ = shape.max_length / config.block + 1;
    // A longer block holds the same tokens, and padding.
    config_.block = std::min(config.block, shape.max_length);
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    return config_.groups == "strided"
               ? strided(x_BLD, context)
               : within_blocks(x_BLD, config_.block, context.mask_BL, context);
  }

 private:
  Tensor within_blocks(const Tensor& x_BLD, int64_t block, const Tensor& mask_BL,
                       const layers::Context& context) {
    ops::AttentionPattern pattern = ops::diagonal_pattern(x_BLD.size(1), block);
    if (config_.causal) pattern.right = 0;  // groups keep the order of their tokens
    return attended(x_BLD, pattern, mask_BL, context);
  }

  Tensor strided(const Tensor& x_BLD, const layers::Context& context) {
    // Batches are trimmed: of a group's places only the first are taken, the same in every group.
    const int64_t length = x_BLD.size(1), block = (length + num_groups_ - 1) / num_groups_;
    const int64_t missing = num_groups_ * block - length;
    Tensor x = x_BLD, mask_BL = context.mask_BL;
    if (missing > 0) {
      if (!mask_BL.defined()) mask_BL = at::ones({x.size(0), length}, x.options().dtype(at::kByte));
      x = at::constant_pad_nd(x, {0, 0, 0, missing});
      mask_BL = at::constant_pad_nd(mask_BL, {0, missing});
    }
    if (mask_BL.defined()) mask_BL = gather_groups(mask_BL, num_groups_);
    const Tensor y = within_blocks(gather_groups(x, num_groups_), block, mask_BL, context);
    return scatter_groups(y, num_groups_).narrow(1, 0, length);
  }

  Config config_;
  int64_t num_groups_;
};

}  // namespace

constinit const LayerMaker kMakeLocal = make_layer<Local>;

}  // namespace lra::mixers
