// Long convolution: y_t = sum over lags l of k_l x_{t-l} + skip x_t in each channel, then GELU and
// a gated linear layer (layers/gated_output.h). The kernel k is one of:
//
// kind = "free", LongConv (Fu et al. 2023, arXiv:2302.06646, section 3): its numbers are
// parameters, initially N(0, 0.002^2), which are squashed, sign(k) max(0, |k| - squash), and in
// training dropped out, k / (1 - kernel_dropout) or 0.
//
// kind = "sgconv", SGConv (Li et al. 2023, arXiv:2210.09298, section 3.2): a direction has scales i
// = 0, .., S - 1 of d = scale_dim parameters each, initially N(0, 1). Scale i is interpolated
// linearly to d 2^max(0, i - 1) lags and multiplied by a^(S - 1 - i), the scales are joined one
// after another, and the whole is divided by its initial Euclidean length. a goes from decay_min in
// the first channel to decay_max in the last one.
//
// A two-sided kernel of W lags has floor(W / 2) in the future, each direction with its own scales;
// `width` bounds W, so a short one is a convolution with a bounded receptive field. Differences
// from the authors' code: docs/deviations.md, 71 and 72.
#include "mixers/specs/long_conv.h"
#include "layers/gated_output.h"
#include "mixers/sequence_layer.h"
#include "ops/long_convolution.h"
#include "ops/pointwise/pointwise.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kFreeDeviation = 0.002;

class LongConv : public SequenceLayer {
 public:
  using Config = LongConvConfig;

  LongConv(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    const int64_t all = (config.bidirectional ? 2 : 1) * shape.max_length;
    const int64_t width = config.width == 0 ? all : std::min(config.width, all);
    future_ = config.bidirectional ? width / 2 : 0;
    past_ = width - future_;
    const layers::Initializer of_kernel = init.of("kernel");
    if (config.kind == "free") {
      kernel_ = register_in_group("kernel", "kernel",
                                  of_kernel.normal({shape.model_dim, width}, kFreeDeviation));
    } else {
      kernel_ = register_in_group(
          "kernel", "kernel",
          of_kernel.normal(
              {config.bidirectional ? 2 : 1, num_scales(), shape.model_dim, config.scale_dim}, 1));
      const at::NoGradGuard no_grad;
      length_ = register_buffer("length", joined_scales().norm(2, {2}, /*keepdim=*/true));
    }
    skip_ = add_normal("skip", init, {shape.model_dim}, 1);
    output_ = add<layers::GatedOutput>("output", init, shape.model_dim, config.output);
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    Tensor kernel_DK = config_.kind == "free" ? at::softshrink(kernel_, config_.squash) : scales();
    if (context.training) {
      kernel_DK = ops::dropout(kernel_DK, config_.kernel_dropout,
                               derive_key(context.step_key, RandomUse::kDropout));
    }
    auto [used_DK, future] = ops::used_lags(kernel_DK, future_, x_BLD.size(1));
    // The skip is one more number at lag 0.
    used_DK =
        used_DK + at::constant_pad_nd(skip_.unsqueeze(1), {future, used_DK.size(1) - 1 - future});
    return output_->forward(ops::long_convolution(x_BLD, context.mask_BL, used_DK, future),
                            context);
  }

 private:
  // The smallest number of scales whose d 2^(S - 1) lags fill each direction.
  int64_t num_scales() const {
    int64_t scales = 1;
    while (config_.scale_dim << (scales - 1) < std::max(past_, future_)) ++scales;
    return scales;
  }

  // [directions, D, d 2^(S - 1)]
  Tensor joined_scales() const {
    const int64_t count = kernel_.size(1), dim = kernel_.size(2);
    const Tensor decay = at::linspace(config_.decay_min, config_.decay_max, dim, kernel_.options());
    std::vector<Tensor> scales;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t lags = config_.scale_dim << std::max<int64_t>(0, i - 1);
      scales.push_back(at::upsample_linear1d(kernel_.select(1, i), lags, /*align_corners=*/false) *
                       decay.pow(static_cast<double>(count - 1 - i)).unsqueeze(1));
    }
    return at::cat(scales, 2);
  }

  Tensor scales() const {
    const Tensor joined = joined_scales() / length_;
    const Tensor past = joined.select(0, 0).narrow(1, 0, past_);
    if (future_ == 0) return past;
    return at::cat({joined.select(0, 1).narrow(1, 0, future_).flip(1), past}, 1);
  }

  Config config_;
  int64_t past_, future_;  // lags; the past begins with lag 0
  Tensor kernel_, length_, skip_;
  std::shared_ptr<layers::GatedOutput> output_;
};

}  // namespace

constinit const LayerMaker kMakeLongConv = make_layer<LongConv>;

}  // namespace lra::mixers
