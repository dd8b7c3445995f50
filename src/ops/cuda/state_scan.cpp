// State recurrences on a device.
#include "ops/cuda/device.h"
#include "ops/scan/state_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

Tensor forward(const Tensor& v, const Tensor& a, bool bidirectional, const MaybeTensor& mask) {
  const OnDeviceOf device(v, {a, mask});
  const StateScanForward scan(v, a, bidirectional, mask);
  with_device_type(v, "lra::state_scan", [&]<typename T>(T) {
    cuda::state_scan_forward<T>(scan.problem<T>(), mutable_data<T>(scan.x), device.stream());
  });
  return scan.x;
}

std::tuple<Tensor, Tensor> backward(const Tensor& grad, const Tensor& x, const Tensor& a,
                                    const MaybeTensor& mask) {
  const OnDeviceOf device(x, {grad, a, mask});
  const StateScanGradients scan(grad, x, a, mask);
  with_device_type(x, "lra::state_scan", [&]<typename T>(T) {
    const auto problem = scan.problem<T>();
    const Tensor scratch = at::empty({cuda::state_scan_scratch(problem.problem)}, a.options());
    cuda::state_scan_backward<T>(problem, scratch.mutable_data_ptr<float>(), device.stream());
  });
  return {scan.of_v, scan.of_a};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("state_scan", forward);
  m.impl("state_scan_backward", backward);
}

}  // namespace lra::ops::device
