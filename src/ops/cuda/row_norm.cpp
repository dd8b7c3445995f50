// Norms of rows on a device.
#include <cmath>

#include "ops/cuda/device.h"
#include "ops/pointwise/row_norm_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Three run(const RowNormForward& norm, cuda::Stream stream) {
  with_device_type(norm.x, "lra::row_norm",
                   [&]<typename T>(T) { cuda::layer_norm_forward<T>(norm.problem<T>(), stream); });
  return {norm.y, norm.mean, norm.rstd};
}

Three run(const RowNormGradients& norm, cuda::Stream stream) {
  with_device_type(norm.x, "lra::row_norm", [&]<typename T>(T) {
    const auto problem = norm.problem<T>();
    const Tensor scratch = at::empty({cuda::layer_norm_scratch(problem.rows, norm.weight.numel())},
                                     norm.weight.options());
    cuda::layer_norm_backward<T>(problem, scratch.mutable_data_ptr<float>(), stream);
  });
  return {norm.of_x, norm.of_weight, norm.of_bias};
}

Three layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const OnDeviceOf device(x, {weight, bias});
  return run(RowNormForward(x, weight, bias, eps, /*centered=*/true), device.stream());
}

Three layer_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                          const Tensor& rstd, const Tensor& weight, const MaybeTensor& beside) {
  const OnDeviceOf device(x, {grad, mean, rstd, weight, beside});
  return run(
      RowNormGradients(grad, x, mean, rstd, weight, /*centered=*/true, /*has_bias=*/true, beside),
      device.stream());
}

Three row_norm_forward(const Tensor& x, const Tensor& weight, double eps, bool centered) {
  const OnDeviceOf device(x, {weight});
  return run(RowNormForward(x, weight, {}, eps, centered), device.stream());
}

Two row_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                      const Tensor& weight, bool centered, const MaybeTensor& beside) {
  const OnDeviceOf device(x, {grad, mean, rstd, weight, beside});
  const auto [of_x, of_weight, none] =
      run(RowNormGradients(grad, x, mean, rstd, weight, centered, /*has_bias=*/false, beside),
          device.stream());
  return {of_x, of_weight};
}

// The mean of squares is a sum divided by the width.
Tensor unit_rows(const Tensor& x) {
  const auto width = static_cast<double>(x.size(-1));
  const Tensor weight =
      at::full({x.size(-1)}, 1 / std::sqrt(width), x.options().dtype(wide_type(x)));
  return row_norm(x.contiguous(), weight, kUnitEps / width);
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("layer_norm", [](const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
    return std::get<0>(layer_norm_forward(x, weight, bias, eps));
  });
  m.impl("layer_norm_forward", layer_norm_forward);
  m.impl("layer_norm_backward", layer_norm_backward);
  m.impl("row_norm", [](const Tensor& x, const Tensor& weight, double eps, bool centered) {
    return std::get<0>(row_norm_forward(x, weight, eps, centered));
  });
  m.impl("row_norm_forward", row_norm_forward);
  m.impl("row_norm_backward", row_norm_backward);
  m.impl("unit_rows", unit_rows);
}

TORCH_LIBRARY_IMPL(lra, C10_CONCATENATE(Autograd, LRA_DEVICE_KEY), m) {
  m.impl("unit_rows", unit_rows);
}

}  // namespace lra::ops::device
