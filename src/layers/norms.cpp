#include "layers/norms.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "layers/on_device.h"
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

int64_t BatchNorm::num_sums() const { return 1 + 2 * weight_.numel(); }

// The number of positions, then for each channel the sum and the sum of squares.
void BatchNorm::take_sums(std::span<double> sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (const auto& [part, seen] : seen_) {
    // One copy, as each waits for a device.
    const auto doubles = [](const at::Tensor& t) { return t.reshape({-1}).to(at::kDouble); };
    const at::Tensor all =
        at::cat({doubles(seen.count), doubles(seen.mean), doubles(seen.variance)}).to(at::kCPU);
    const int64_t dim = seen.mean.numel();
    const double count = all.const_data_ptr<double>()[0];
    const double *mean = all.const_data_ptr<double>() + 1, *variance = mean + dim;
    sums[0] += count;
    for (int64_t c = 0; c < dim; ++c) {
      sums[static_cast<size_t>(1 + 2 * c)] += count * mean[c];
      sums[static_cast<size_t>(2 + 2 * c)] += count * (variance[c] + mean[c] * mean[c]);
    }
  }
  seen_.clear();
}

void BatchNorm::follow(std::span<const double> sums) {
  const double count = sums[0];
  if (count < 1) return;
  const int64_t dim = weight_.numel();
  const at::Tensor both = at::empty({2, dim}, at::kDouble);
  double *mean = both.mutable_data_ptr<double>(), *variance = mean + dim;
  for (int64_t c = 0; c < dim; ++c) {
    const double m = sums[static_cast<size_t>(1 + 2 * c)] / count;
    const double square = sums[static_cast<size_t>(2 + 2 * c)] / count;
    mean[c] = m;
    // Unbiased, as in PyTorch.
    variance[c] = std::max(0.0, square - m * m) * count / std::max(1.0, count - 1);
  }
  const auto towards = [](at::Tensor& running, const at::Tensor& now) {
    running.mul_(1 - kMomentum).add_(now, kMomentum);
  };
  const at::NoGradGuard no_grad;
  const at::Tensor there = on_device(both.to(running_mean_.scalar_type()), running_mean_.device());
  towards(running_mean_, there[0]);
  towards(running_var_, there[1]);
}

std::shared_ptr<Norm> make_norm(const std::string& kind, const Initializer& init, int64_t dim) {
  if (kind == "layer") return std::make_shared<LayerNorm>(init, dim);
  if (kind == "rms") return std::make_shared<RmsNorm>(init, dim);
  if (kind == "scale") return std::make_shared<ScaleNorm>(init, dim);
  LRA_CHECK_EQ(kind, std::string("batch"));
  return std::make_shared<BatchNorm>(init, dim);
}

}  // namespace lra::layers
