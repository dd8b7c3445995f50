#include "mixers/recurrent/recurrent_heads.h"

#include <ATen/TensorSubclassLikeUtils.h>

#include "ops/pointwise/activation.h"
#include "ops/pointwise/row_norm.h"
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

void check_divides(const char* setting, int64_t count, int64_t channels, const char* is_not,
                   const char* expected) {
  if (channels % count == 0) return;
  throw Error(
      {.where = setting,
       .what = std::to_string(count) + " " + is_not + " " + std::to_string(channels) + " channels",
       .expected = expected});
}

namespace {

// Rows [E, W] with zeros between them [E, K], both ways by places in rows. A place that is read
// twice would make the gradient a sum of arrays.
struct PlacedFunction : torch::autograd::Function<PlacedFunction> {
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& weight_EW,
                        const Tensor& to_EK, const Tensor& from_EW) {
    ctx->save_for_backward({from_EW});
    return at::constant_pad_nd(weight_EW, {0, 1}).gather(1, to_EK);
  }
  static std::vector<Tensor> backward(torch::autograd::AutogradContext* ctx,
                                      std::vector<Tensor> grads) {
    return {grads[0].gather(1, ctx->get_saved_variables()[0]), Tensor(), Tensor()};
  }
};

DirectedPlaces places_of(const std::vector<int64_t>& parts, int64_t width) {
  std::vector<Tensor> signs;  // of the lags in each channel
  for (const int64_t part : parts) {
    for (const int64_t sign : {1, -1}) signs.push_back(at::full({part / 2, 1}, sign, at::kLong));
  }
  const Tensor sign_E1 = at::cat(signs);
  const Tensor lag_EK = sign_E1 * (at::arange(2 * width - 1) - (width - 1));
  // Place `width` holds a zero.
  return {lag_EK.masked_fill(lag_EK.lt(0), width), width - 1 + sign_E1 * at::arange(width)};
}

}  // namespace

DirectedKernel directed_kernel(const Tensor& weight_EW, const std::vector<int64_t>& parts,
                               bool bidirectional, DirectedPlaces& places) {
  if (!bidirectional) return {weight_EW, 0};
  const int64_t width = weight_EW.size(1);
  DirectedPlaces here = places;
  if (!here.to_EK.defined() || here.to_EK.device() != weight_EW.device()) {
    here = places_of(parts, width);
    here = {here.to_EK.to(weight_EW.device()), here.from_EW.to(weight_EW.device())};
    // Tensors without data, or of inference mode, do not outlive the caller's mode.
    if (!here.to_EK.is_inference() && !at::isTensorSubclassLike(here.to_EK)) places = here;
  }
  return {PlacedFunction::apply(weight_EW, here.to_EK, here.from_EW), width - 1};
}

Steps decaying_steps(const Tensor& x_BLH, const Tensor& bias_H, const Tensor& rate_log_H) {
  const auto type = ops::wide_type(x_BLH);
  const Tensor step = ops::softplus(x_BLH + bias_H.to(type));  // in the wider type
  const Tensor rate = rate_log_H.to(at::kDouble).exp().to(type);
  return {(step * -rate).unsqueeze(3), step};
}

Tensor uniform_rate_logs(const layers::Initializer& init, int64_t count, double least,
                         double most) {
  return (least + (most - least) * uniform_on_cpu(init, count)).log().to(init.device(), at::kFloat);
}

Tensor rows_of_length(double length, const Tensor& x, double eps) {
  const auto width = static_cast<double>(x.size(-1));
  const auto like = x.options().dtype(ops::wide_type(x));
  // The norm divides by the root of their mean square.
  return ops::row_norm(x, at::full({x.size(-1)}, length / std::sqrt(width), like), eps / width);
}

Tensor block_diagonal(const Tensor& w_GRW) {
  const int64_t blocks = w_GRW.size(0);
  if (blocks == 1) return w_GRW.squeeze(0);
  const Tensor diagonal = at::eye(blocks, w_GRW.options()).view({blocks, 1, blocks, 1});
  return (w_GRW.unsqueeze(2) * diagonal).flatten(2, 3).flatten(0, 1);
}

Tensor step_bias(const layers::Initializer& init, int64_t count, double dt_min, double dt_max) {
  // The inverse of softplus.
  return log_uniform_steps(init, count, dt_min, dt_max).exp().expm1().log();
}

}  // namespace lra::mixers
