// Convolutions with given kernels on a device, by transforms at any width.
#include "ops/long_convolution.h"

#include "ops/cuda/circle.h"

namespace lra::ops::device {
namespace {

// x as the kernels take it: a scan without modes.
template <typename T>
kernels::DiagonalScan<T> scan_of(const Tensor& x) {
  return {.batch = x.size(0), .length = x.size(1), .channels = x.size(2), .x = const_data<T>(x)};
}

// The kernel [D, K] on a circle [D, size] where no lag meets another one within the length.
Tensor on_circle(const Tensor& kernel, int64_t future, int64_t length) {
  const int64_t width = kernel.size(1), reach = std::max(future, width - 1 - future);
  const int64_t size = kernels::fourier_size(std::max(width, length + reach));
  return at::constant_pad_nd(kernel, {0, size - width}).roll(-future, 1);
}

Tensor forward(const Tensor& x_in, const MaybeTensor& mask, const Tensor& kernel, int64_t future) {
  const OnDeviceOf device(x_in, {mask, kernel});
  check_convolution(x_in, mask, kernel, future);
  const Tensor x = x_in.contiguous(), y = at::empty_like(x);
  with_device_type(x, "lra::convolution", [&]<typename T>(T) {
    if (x.numel() == 0) return;
    Circle<T>(scan_of<T>(x), on_circle(kernel, future, x.size(1)), mask_data(mask), device.stream())
        .forward(mutable_data<T>(y));
  });
  return y;
}

std::tuple<Tensor, Tensor> backward(const Tensor& grad_in, const Tensor& x_in,
                                    const MaybeTensor& mask, const Tensor& kernel, int64_t future,
                                    std::array<bool, 2> needed) {
  const OnDeviceOf device(x_in, {grad_in, mask, kernel});
  check_convolution(x_in, mask, kernel, future);
  LRA_CHECK_EQ(grad_in.sizes(), x_in.sizes());
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous(), of_x = at::empty_like(x);
  Tensor of_kernel = at::zeros_like(kernel);
  with_device_type(x, "lra::convolution", [&]<typename T>(T) {
    if (x.numel() == 0) return;
    const Tensor lags = Circle<T>(scan_of<T>(x), on_circle(kernel, future, x.size(1)),
                                  mask_data(mask), device.stream())
                            .backward(const_data<T>(grad), mutable_data<T>(of_x));
    of_kernel = lags.roll(future, 1).narrow(1, 0, kernel.size(1)).contiguous();
  });
  return {needed[0] ? of_x : Tensor(), needed[1] ? of_kernel : Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("convolution", forward);
  m.impl("convolution_backward", backward);
}

}  // namespace lra::ops::device
