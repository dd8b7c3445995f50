// Norms of rows on a device.
#include "ops/cuda/device.h"
#include "ops/pointwise/row_norm_problem.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
namespace cuda = kernels::cuda;

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x, const Tensor& weight, double eps,
                                           bool centered) {
  const OnDeviceOf device(x, {weight});
  const RowNormForward norm(x, weight, eps, centered);
  with_device_type(x, "lra::row_norm", [&](auto zero) {
    using T = decltype(zero);
    cuda::layer_norm_forward<T>(norm.problem<T>(), device.stream());
  });
  return {norm.y, norm.mean, norm.rstd};
}

std::tuple<Tensor, Tensor> backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                                    const Tensor& rstd, const Tensor& weight, bool centered) {
  const OnDeviceOf device(x, {grad, mean, rstd, weight});
  const RowNormGradients norm(grad, x, mean, rstd, weight, centered);
  with_device_type(x, "lra::row_norm", [&](auto zero) {
    using T = decltype(zero);
    const auto problem = norm.problem<T>();
    const Tensor scratch =
        at::empty({cuda::layer_norm_scratch(problem.rows, weight.numel())}, norm.weight.options());
    cuda::layer_norm_backward<T>(problem, scratch.mutable_data_ptr<float>(), device.stream());
  });
  return {norm.of_x, norm.of_weight};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("row_norm", [](const Tensor& x, const Tensor& weight, double eps, bool centered) {
    return std::get<0>(forward(x, weight, eps, centered));
  });
  m.impl("row_norm_forward", forward);
  m.impl("row_norm_backward", backward);
}

}  // namespace lra::ops::device
