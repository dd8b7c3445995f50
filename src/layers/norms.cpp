#include "layers/norms.h"

#include <cmath>

#include "base/error.h"
#include "ops/pointwise/batch_norm.h"
#include "ops/pointwise/layer_norm.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"

namespace lra::layers {
namespace {

constexpr double kRmsEps = 1e-6;

at::Tensor wide(const at::Tensor& x) { return x.to(ops::wide_type(x)); }

}  // namespace

LayerNorm::LayerNorm(const Initializer& init, int64_t dim) {
  weight = register_parameter("weight", init.ones({dim}));
  bias = register_parameter("bias", init.zeros({dim}));
}

Norm::OfStream LayerNorm::of_stream(const at::Tensor& x_BLD, const Context&) {
  const auto [norm_BLD, stream_BLD] = ops::layer_norm_of_stream(x_BLD, weight, bias, kEps);
  return {norm_BLD, stream_BLD};
}

RmsNorm::RmsNorm(const Initializer& init, int64_t dim) {
  weight_ = register_parameter("weight", init.ones({dim}));
}

Norm::OfStream RmsNorm::of_stream(const at::Tensor& x_BLD, const Context&) {
  const auto [norm_BLD, stream_BLD] = ops::row_norm_of_stream(x_BLD, weight_, kRmsEps);
  return {norm_BLD, stream_BLD};
}

ScaleNorm::ScaleNorm(const Initializer& init, int64_t dim) {
  scale_ = register_parameter("scale", init.ones({1}) * std::sqrt(static_cast<double>(dim)));
}

Norm::OfStream ScaleNorm::of_stream(const at::Tensor& x_BLD, const Context&) {
  const at::Tensor x = wide(x_BLD);
  const at::Tensor y = x * (x.square().sum(-1, true) + kRmsEps).rsqrt() * scale_;
  return {y.to(x_BLD.scalar_type()), x_BLD};
}

BatchNorm::BatchNorm(const Initializer& init, int64_t dim) {
  weight_ = register_parameter("weight", init.ones({dim}));
  bias_ = register_parameter("bias", init.zeros({dim}));
  running_mean_ = register_buffer("running_mean", init.zeros({dim}));
  running_var_ = register_buffer("running_var", init.ones({dim}));
}

Norm::OfStream BatchNorm::of_stream(const at::Tensor& x_BLD, const Context& context) {
  if (!context.training) {
    const at::Tensor slope = (running_var_ + kEps).rsqrt() * weight_;
    return {at::addcmul(bias_, wide(x_BLD) - running_mean_, slope).to(x_BLD.scalar_type()), x_BLD};
  }
  const auto values = ops::batch_norm(x_BLD, context.mask_BL, weight_, bias_, kEps);
  seen_[context.part] = {values.count, values.mean, values.variance};
  return {values.y, values.stream};
}

std::shared_ptr<Norm> make_norm(const std::string& kind, const Initializer& init, int64_t dim) {
  if (kind == "layer") return std::make_shared<LayerNorm>(init, dim);
  if (kind == "rms") return std::make_shared<RmsNorm>(init, dim);
  if (kind == "scale") return std::make_shared<ScaleNorm>(init, dim);
  LRA_CHECK_EQ(kind, std::string("batch"));
  return std::make_shared<BatchNorm>(init, dim);
}

}  // namespace lra::layers
