// RG-LRU, the real-gated linear recurrent unit, in the block of Griffin (De et al. 2024,
// arXiv:2402.19427, sections 2.3 and 2.4):
//
//   y = GELU(W_y u + b_y),  x = conv(W_x u + b_x),
//   r = sigmoid(A x + b_a),  i = sigmoid(B x + b_i),  log a = -8 r softplus(lambda),
//   h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t x_t),   result = W_out (h y) + b_out,
//
// with block-diagonal A and B of `blocks` blocks and a depthwise convolution of the last
// `conv_width` tokens. The first token of a direction enters with the factor 1. Initially a at r =
// 1 is uniform by area on the ring between r_min and r_max. `bidirectional` lets the second half of
// the channels run from the end, with a convolution that looks at later tokens (recurrent_heads.h).
// Differences from the authors' code: docs/deviations.md.
#include "mixers/specs/rg_lru.h"
#include "layers/linear.h"
#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/long_convolution.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/pointwise.h"
#include "ops/precision.h"
#include "ops/scan/gated_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

class RgLru : public SequenceLayer {
 public:
  using Config = RgLruConfig;

  RgLru(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config), inner_(config.inner_dim > 0 ? config.inner_dim : shape.model_dim) {
    check_halves("mixer.inner_dim", inner_, config.bidirectional);
    check_divides("mixer.blocks", config.blocks, inner_, "blocks do not divide",
                  "a divisor of the channels of the recurrence");
    check_order("mixer.r_min", config.r_min, "mixer.r_max", config.r_max);
    const int64_t width = inner_ / config.blocks;
    gate_ = add<layers::Linear>("gate", init, inner_, shape.model_dim);
    input_ = add<layers::Linear>("input", init, inner_, shape.model_dim);
    conv_ = add_normal("conv_weight", init, {inner_, config.conv_width}, 0.1);
    conv_bias_ = register_parameter("conv_bias", init.zeros({inner_}));
    const auto gate = [&](const char* name) {
      return add_normal(name, init, {config.blocks, width, width}, layers::inverse_root(width));
    };
    a_weight_ = gate("a_weight");
    a_bias_ = register_parameter("a_bias", init.zeros({inner_}));
    i_weight_ = gate("i_weight");
    i_bias_ = register_parameter("i_bias", init.zeros({inner_}));
    const double least = config.r_min * config.r_min, most = config.r_max * config.r_max;
    const Tensor log_square =
        uniform_rate_logs(init.of("lambda"), inner_, least, most).to(at::kDouble);
    // softplus(lambda) = -log(radius) / 8.
    lambda_ = register_in_group("lru", "lambda",
                                (log_square / -16).expm1().log().to(init.device(), at::kFloat));
    output_ = add<layers::Linear>("output", init, shape.model_dim, inner_);
  }

  Tensor forward(const Tensor& u_BLD, const layers::Context& context) override {
    const DirectedKernel conv = directed_kernel(conv_, {inner_}, config_.bidirectional, places_);
    Tensor stream_BLD = u_BLD;
    const Tensor input_x = input_->of_stream(stream_BLD);
    Tensor x = ops::long_convolution(input_x, context.mask_BL, conv.kernel_EK, conv.future) +
               ops::beside(conv_bias_, input_x);
    const auto type = ops::wide_type(x);
    const auto gate = [&](const Tensor& weight, const Tensor& bias) {
      return ops::sigmoid(ops::linear_of_stream(x, block_diagonal(weight), bias).to(type));
    };
    const Tensor r = gate(a_weight_, a_bias_), i = gate(i_weight_, i_bias_);
    const Tensor log_a = r * (-8 * ops::softplus(lambda_.to(type)));
    const Tensor share = ops::fresh_share(log_a).masked_fill(is_first(x, context.mask_BL), 1);
    const Tensor input = i * share;
    const Tensor h = ops::gated_scan(ops::exp(log_a), (input * x.to(type)).to(x.scalar_type()),
                                     reversed_channels(), context.mask_BL);
    return output_->forward(h * ops::gelu_dropout(gate_->forward(stream_BLD), 0, 0));
  }

 private:
  int64_t reversed_channels() const { return config_.bidirectional ? inner_ / 2 : 0; }
  // Bool [B or 1, L, E]: the first token of each channel's direction.
  Tensor is_first(const Tensor& x, const Tensor& mask_BL) const {
    const int64_t length = x.size(1), reversed = reversed_channels();
    const Tensor place = at::arange(length, x.options().dtype(at::kLong)).unsqueeze(0);
    const Tensor last = mask_BL.defined() ? mask_BL.sum(1, /*keepdim=*/true, at::kLong) - 1
                                          : at::full({1, 1}, length - 1, place.options());
    const auto channels = [&](const Tensor& t, int64_t count) {
      return t.unsqueeze(2).expand({last.size(0), -1, count});
    };
    return at::cat({channels(place.eq(0), inner_ - reversed), channels(place.eq(last), reversed)},
                   2);
  }

  Config config_;
  DirectedPlaces places_;
  int64_t inner_;  // E
  std::shared_ptr<layers::Linear> gate_, input_, output_;
  Tensor conv_, conv_bias_;                       // [E, conv_width], [E]
  Tensor a_weight_, a_bias_, i_weight_, i_bias_;  // [blocks, E / blocks, E / blocks], [E], twice
  Tensor lambda_;                                 // [E]
};

}  // namespace

constinit const LayerMaker kMakeRgLru = make_layer<RgLru>;

}  // namespace lra::mixers
