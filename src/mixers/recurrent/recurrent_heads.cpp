#include "mixers/recurrent/recurrent_heads.h"

#include "mixers/state_space.h"
#include "ops/gate.h"
#include "ops/long_convolution.h"
#include "ops/precision.h"

namespace lra::mixers {

using at::Tensor;

void check_halves(const char* setting, int64_t count, bool bidirectional) {
  if (!bidirectional || count % 2 == 0) return;
  throw Error({.where = setting,
               .what = "makes " + std::to_string(count) + ", which have no half",
               .expected = "an even number, half of it for each direction",
               .advice = "mixer.bidirectional=false has one direction"});
}

Tensor short_convolution(const Tensor& x_BLE, const Tensor& mask_BL, const Tensor& weight_EW,
                         const Tensor& bias_E, const std::vector<int64_t>& parts,
                         bool bidirectional) {
  const int64_t before = bidirectional ? weight_EW.size(1) - 1 : 0;
  Tensor kernel = weight_EW;
  if (bidirectional) {  // lags from -before on, with zeros for those of the other direction
    std::vector<Tensor> rows;
    for (const Tensor& part : weight_EW.split_with_sizes(parts)) {
      const auto halves = part.chunk(2);
      rows.push_back(at::constant_pad_nd(halves[0], {before, 0}));
      rows.push_back(at::constant_pad_nd(halves[1].flip(1), {0, before}));
    }
    kernel = at::cat(rows);
  }
  const Tensor y = ops::long_convolution(x_BLE, mask_BL, kernel, before);
  return bias_E.defined() ? y + ops::beside(bias_E, x_BLE) : y;
}

Steps decaying_steps(const Tensor& x_BLH, const Tensor& bias_H, const Tensor& rate_log_H) {
  const Tensor step = softplus_of(x_BLH.to(at::kDouble) + bias_H.to(at::kDouble));
  const auto type = ops::wide_type(x_BLH);
  return {(-rate_log_H.to(at::kDouble).exp() * step).to(type).unsqueeze(3), step.to(type)};
}

Tensor softplus_of(const Tensor& x) {
  const Tensor wide = x.to(at::kDouble);
  // Half the sum of x and |x|, not clamp_min(0): its slope at 0, which gates have at first, is 1/2.
  return (wide + wide.abs()) / 2 + (1 + (-wide.abs()).exp()).log();
}

Tensor sigmoid_of(const Tensor& x) {
  if (x.scalar_type() == at::kDouble) return 1 / (1 + (-x).exp());  // GPUs have no float64 gate
  return ops::gate(at::ones_like(x), x);
}

Tensor norm_of_rows(const Tensor& x, const Tensor& weight) {
  const Tensor wide = x.to(ops::wide_type(x));
  const Tensor y = wide * (wide.square().mean(-1, true) + 1e-5).rsqrt() * weight;
  return y.to(x.scalar_type());
}

Tensor uniform_rate_logs(const layers::Initializer& init, int64_t count, double least,
                         double most) {
  const layers::Initializer host = layers::Initializer(init.seed()).of(init.name());
  const Tensor from_0_to_1 = 0.5 - host.uniform({count}, 0.5).to(at::kDouble);  // (0, 1]
  return (least + (most - least) * from_0_to_1).log().to(init.device(), at::kFloat);
}

Tensor block_diagonal(const Tensor& w_GRW) {
  const int64_t blocks = w_GRW.size(0);
  if (blocks == 1) return w_GRW[0];
  const Tensor diagonal = at::eye(blocks, w_GRW.options()).view({blocks, 1, blocks, 1});
  return (w_GRW.unsqueeze(2) * diagonal).flatten(2, 3).flatten(0, 1);
}

Tensor step_bias(const layers::Initializer& init, int64_t count, double dt_min, double dt_max) {
  // The inverse of softplus.
  return log_uniform_steps(init, count, dt_min, dt_max).exp().expm1().log();
}

}  // namespace lra::mixers
