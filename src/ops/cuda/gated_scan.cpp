// The gated scan on a device.
#include "ops/cuda/device.h"
#include "ops/scan/gated_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

Tensor forward(const Tensor& a, const Tensor& v, int64_t reversed_channels,
               const MaybeTensor& mask) {
  const OnDeviceOf device(v, {a, mask});
  const GatedScanForward scan(a, v, reversed_channels, mask);
  with_device_type(v, "lra::gated_scan", [&]<typename T>(T) {
    cuda::gated_scan_forward<T>(scan.problem<T>(), mutable_data<T>(scan.h), device.stream());
  });
  return scan.h;
}

std::tuple<Tensor, Tensor> backward(const Tensor& grad, const Tensor& a, const Tensor& h,
                                    int64_t reversed_channels, const MaybeTensor& mask) {
  const OnDeviceOf device(h, {grad, a, mask});
  const GatedScanGradients scan(grad, a, h, reversed_channels, mask);
  with_device_type(h, "lra::gated_scan", [&]<typename T>(T) {
    cuda::gated_scan_backward<T>(scan.problem<T>(), device.stream());
  });
  return {scan.of_a, scan.of_v};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("gated_scan", forward);
  m.impl("gated_scan_backward", backward);
}

}  // namespace lra::ops::device
