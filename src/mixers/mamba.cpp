// Mamba (Gu and Dao 2023, arXiv:2312.00752, section 3.4): a gated block around a selective state
// space, whose steps, inputs and outputs are functions of the sequence. With E = expand D inner
// channels,
//
//   [u, z] = W_in x,  u = SiLU(conv(u) + bias),  [r, b, c] = W_select u,
//   y = scan(u; dt = softplus(W_step r + bias), -exp(a_log), b, c) + skip u,
//   result = W_out (y SiLU(z)),
//
// with a depthwise convolution of the last `conv_width` tokens, and the scan of
// ops/selective_scan.h. Initially a_log is log(1), .., log(states) in every channel, and steps are
// log-uniform in [dt_min, dt_max].
//
// Three settings follow the block-biased form for long sequences (Yu and Erichson 2025,
// arXiv:2505.09022): `blocks` cuts the channels into blocks with independent selection, each with
// its own W_select and W_step, `channel_bias` adds to b numbers that each channel learns, and
// `complex_states` makes states, b and c complex, with y the real part. Their poles are at first
// -1/2 + i pi n, n = 0, 1, .. (S4D-Lin, Gu et al. 2022, arXiv:2206.11893).
// `bidirectional` adds a second convolution and scan, which run from the end of the sequence; both
// are added up before the gate. Differences from the authors' code: docs/deviations.md, 86 to 89.
#include "mixers/specs/mamba.h"

#include <numbers>

#include "mixers/recurrent/recurrent_heads.h"
#include "mixers/sequence_layer.h"
#include "ops/convolution_silu.h"
#include "ops/linear.h"
#include "ops/pointwise/gate.h"
#include "ops/precision.h"
#include "ops/scan/selective_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

class Mamba : public SequenceLayer {
 public:
  using Config = MambaConfig;

  Mamba(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config), inner_(config.expand * shape.model_dim) {
    check_divides("mixer.blocks", config.blocks, inner_, "blocks do not divide");
    const int64_t dim = shape.model_dim, states = config.states;
    const int64_t directions = config.bidirectional ? 2 : 1, width = inner_ / config.blocks;
    if (config.dt_rank == 0)
      config_.dt_rank = (dim + 16 * config.blocks - 1) / (16 * config.blocks);
    const int64_t rank = config_.dt_rank, numbers = state_numbers();
    const auto of_channels = [&](const Tensor& t, at::IntArrayRef sizes) {
      return t.to(init.device(), at::kFloat).expand(sizes).contiguous();
    };
    in_ = add_normal("in_weight", init, {2 * inner_, dim}, layers::inverse_root(dim));
    conv_ = add_normal("conv_weight", init, {directions, inner_, config.conv_width},
                       layers::inverse_root(config.conv_width));
    conv_bias_ = register_parameter("conv_bias", init.zeros({directions, inner_}));
    select_ =
        add_normal("select_weight", init, {directions, config.blocks, rank + 2 * numbers, width},
                   layers::inverse_root(width));
    step_ = add_normal("step_weight", init, {directions, inner_, rank}, layers::inverse_root(rank));
    const Tensor steps =
        step_bias(init.of("step_bias"), directions * inner_, config.dt_min, config.dt_max);
    step_bias_ = register_in_group("ssm", "step_bias", steps.view({directions, inner_}));
    const Tensor place = at::arange(states, at::kDouble);
    const Tensor rates = config.complex_states ? at::full_like(place, 0.5) : place + 1;
    a_log_ =
        register_in_group("ssm", "a_log", of_channels(rates.log(), {directions, inner_, states}));
    if (config.complex_states) {
      frequency_ = register_in_group(
          "ssm", "frequency", of_channels(place * std::numbers::pi, {directions, inner_, states}));
    }
    if (config.channel_bias) {
      b_bias_ = register_in_group("ssm", "b_bias",
                                  init.of("b_bias").normal({directions, inner_, numbers}, 1));
    }
    skip_ = register_in_group("ssm", "skip", init.ones({directions, inner_}));
    out_ = add_normal("out_weight", init, {dim, inner_}, layers::inverse_root(inner_));
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const auto both = ops::linear(x_BLD, in_).split(inner_, 2);
    Tensor y;
    for (const Direction& of : directions(ops::wide_type(x_BLD))) {
      const Tensor one = scanned(both[0], of, context.mask_BL);
      y = y.defined() ? y + one : one;
    }
    return ops::linear(ops::silu(both[1], y), out_);
  }

 private:
  // The parameters of a direction.
  struct Direction {
    Tensor conv, conv_bias, select, step, step_bias, a_ND, frequency_ND, b_bias_ND, skip;
    bool reversed = false;
  };

  int64_t state_numbers() const { return (config_.complex_states ? 2 : 1) * config_.states; }

  // All at once: the gradient of each parameter is one array, not one with zeros for each
  // direction.
  std::vector<Direction> directions(at::ScalarType type) const {
    std::vector<Direction> all(static_cast<size_t>(skip_.size(0)));
    const auto set = [&](Tensor Direction::*member, const Tensor& from) {
      if (!from.defined()) return;
      const auto parts = from.unbind();
      for (size_t n = 0; n < all.size(); ++n) all[n].*member = parts[n];
    };
    const auto of_states = [&](const Tensor& t) {
      return t.defined() ? t.transpose(1, 2).to(type, false, false, at::MemoryFormat::Contiguous)
                         : t;
    };
    set(&Direction::conv, conv_.to(type));
    set(&Direction::conv_bias, conv_bias_.to(type));
    set(&Direction::select, select_);
    set(&Direction::step, step_);
    set(&Direction::step_bias, step_bias_.to(type));
    set(&Direction::a_ND, of_states(-a_log_.to(at::kDouble).exp()));
    set(&Direction::frequency_ND, of_states(frequency_));
    set(&Direction::b_bias_ND, of_states(b_bias_));
    set(&Direction::skip, skip_.to(type));
    all.back().reversed = config_.bidirectional;
    return all;
  }

  // The convolution, selection and scan of a direction: [B, L, E] -> [B, L, E].
  Tensor scanned(const Tensor& x, const Direction& of, const Tensor& mask_BL) const {
    const Tensor local =
        ops::convolution_silu(x, mask_BL, of.reversed ? of.conv.flip(1) : of.conv, of.conv_bias,
                              of.reversed ? config_.conv_width - 1 : 0);
    // Steps rounded to bfloat16 would turn the phases of complex states.
    Tensor u = config_.complex_states ? local.to(ops::wide_type(x)) : local;
    const int64_t blocks = config_.blocks, rank = config_.dt_rank, numbers = state_numbers();
    const auto rows = [&] {
      if (blocks == 1) return of.select.squeeze(0);
      std::vector<Tensor> parts;  // r, b and c of all blocks
      for (const Tensor& part : of.select.split_with_sizes({rank, numbers, numbers}, 1)) {
        parts.push_back(block_diagonal(part));
      }
      return at::cat(parts);
    };
    const auto selected = ops::linear_of_stream(u, rows()).split_with_sizes(
        {blocks * rank, blocks * numbers, blocks * numbers}, 2);
    const Tensor step = block_diagonal(of.step.view({blocks, -1, rank}));
    const Tensor y = ops::selective_scan({.x_BLD = u,
                                          .dt_BLD = ops::linear(selected[0], step),
                                          .a_ND = of.a_ND,
                                          .b_BLGN = selected[1].unflatten(2, {blocks, numbers}),
                                          .c_BLGN = selected[2].unflatten(2, {blocks, numbers}),
                                          .dt_bias_D = of.step_bias,
                                          .bias_ND = of.b_bias_ND,
                                          .skip_D = of.skip,
                                          .reversed = of.reversed,
                                          .mask_BL = mask_BL,
                                          .frequency_ND = of.frequency_ND});
    return y.to(x.scalar_type());
  }

  Config config_;
  int64_t inner_;             // E
  Tensor in_, out_;           // [2 E, D], [D, E]
  Tensor conv_, conv_bias_;   // [directions, E, conv_width], [directions, E]
  Tensor select_;             // [directions, blocks, dt_rank + 2 numbers, E / blocks]
  Tensor step_, step_bias_;   // [directions, E, dt_rank], [directions, E]
  Tensor a_log_, frequency_;  // [directions, E, states]
  Tensor b_bias_, skip_;      // [directions, E, numbers], [directions, E]
};

}  // namespace

constinit const LayerMaker kMakeMamba = make_layer<Mamba>;

}  // namespace lra::mixers
