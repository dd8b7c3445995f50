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

// Rows t [B, L, ...], sorted by group into [B, num_groups * block, ...] with 0 in places without a
// row, or `back`. One copy each way, and the gradient is the copy in the other direction.
struct Regrouped : torch::autograd::Function<Regrouped> {
  static Tensor forward(ops::AutogradContext* ctx, const Tensor& t, int64_t num_groups,
                        int64_t length, bool back) {
    ctx->saved_data["num_groups"] = num_groups;
    ctx->saved_data["length"] = length;
    ctx->saved_data["back"] = back;
    const int64_t block = (length + num_groups - 1) / num_groups;
    auto sizes = t.sizes().vec();
    sizes[1] = back ? length : num_groups * block;
    const Tensor to = at::empty(sizes, t.options()), &rows = back ? to : t, &groups = back ? t : to;
    const auto copy = [&](const Tensor& of_rows, const Tensor& of_groups) {
      back ? of_rows.copy_(of_groups) : of_groups.copy_(of_rows);
    };
    const Tensor places = groups.unflatten(1, {num_groups, block}).transpose(1, 2);
    const int64_t full = length / num_groups, rest = length % num_groups;
    copy(rows.narrow(1, 0, length - rest).unflatten(1, {full, num_groups}),
         places.narrow(1, 0, full));
    if (rest == 0) return to;
    const Tensor last = places.select(1, full);
    copy(rows.narrow(1, length - rest, rest), last.narrow(1, 0, rest));
    if (!back) last.narrow(1, rest, num_groups - rest).zero_();
    return to;
  }
  static ops::variable_list backward(ops::AutogradContext* ctx, ops::variable_list grads) {
    auto& saved = ctx->saved_data;
    return {Regrouped::apply(grads[0], saved["num_groups"].toInt(), saved["length"].toInt(),
                             !saved["back"].toBool()),
            Tensor(), Tensor(), Tensor()};
  }
};

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
    Tensor mask_BL = context.mask_BL;
    if (!mask_BL.defined() && length < num_groups_ * block) {
      mask_BL = at::ones({x_BLD.size(0), length}, x_BLD.options().dtype(at::kByte));
    }
    const auto grouped = [&](const Tensor& t, bool back) {
      return Regrouped::apply(t, num_groups_, length, back);
    };
    if (mask_BL.defined()) mask_BL = grouped(mask_BL, false);
    return grouped(within_blocks(grouped(x_BLD, false), block, mask_BL, context), true);
  }

  Config config_;
  int64_t num_groups_;
};

}  // namespace

constinit const LayerMaker kMakeLocal = make_layer<Local>;

}  // namespace lra::mixers
