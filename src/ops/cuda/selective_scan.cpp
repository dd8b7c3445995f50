// The selective scan on a device.
#include "ops/cuda/device.h"
#include "ops/scan/selective_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

Tensor forward(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b, const Tensor& c,
               const Tensor& dt_bias, const MaybeTensor& bias, const MaybeTensor& skip,
               bool reversed, const MaybeTensor& mask) {
  const OnDeviceOf device(x, {dt, a, b, c, dt_bias, bias, skip, mask});
  const SelectiveScanArguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask);
  const Tensor y = at::empty_like(in.x);
  with_device_type(x, "lra::selective_scan", [&]<typename T>(T) {
    cuda::selective_scan_forward<T>(in.problem<T>(), mutable_data<T>(y), device.stream());
  });
  return y;
}

SelectiveScanGradients backward(const Tensor& grad, const Tensor& x, const Tensor& dt,
                                const Tensor& a, const Tensor& b, const Tensor& c,
                                const Tensor& dt_bias, const MaybeTensor& bias,
                                const MaybeTensor& skip, bool reversed, const MaybeTensor& mask,
                                const MaybeTensor&) {
  const OnDeviceOf device(x, {grad, dt, a, b, c, dt_bias, bias, skip, mask});
  const SelectiveScanArguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask);
  const SelectiveScanResults results(in, grad);
  with_device_type(x, "lra::selective_scan", [&]<typename T>(T) {
    const auto problem = results.problem<T>();
    const Tensor scratch =
        at::empty({cuda::selective_scan_scratch(problem.problem)}, in.a.options());
    cuda::selective_scan_backward<T>(problem, scratch.mutable_data_ptr<float>(), device.stream());
  });
  return results.gradients();
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("selective_scan", forward);
  m.impl("selective_scan_backward", backward);
}

}  // namespace lra::ops::device
