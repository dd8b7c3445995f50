// Gates, and convolutions of a few lags followed by SiLU, on a device.
#include "ops/pointwise/gate_operators.h"

#include "ops/convolution_silu.h"
#include "ops/cuda/device.h"
#include "ops/short_convolution_problem.h"

namespace lra::ops::device {
namespace {

using Mask = MaybeTensor;
namespace cuda = kernels::cuda;

struct GatesOfDevice {
  template <typename F>
  static void with_type(const Tensor& t, F f) {
    with_device_type(t, "lra::gate", f);
  }
  template <typename T>
  static void forward(const kernels::Gate<T>& p, T* y, const Tensor& t) {
    cuda::gate_forward<T>(p, y, OnDeviceOf(t).stream());
  }
  template <typename T>
  static void backward(const kernels::Gate<T>& p, const T* grad,
                       const kernels::GateGradients<T>& to, const Tensor& t) {
    cuda::gate_backward<T>(p, grad, to, OnDeviceOf(t).stream());
  }
};

Tensor convolution_silu(const Tensor& x_in, const Mask& mask, const Tensor& kernel,
                        const Tensor& bias, int64_t future) {
  const OnDeviceOf device(x_in, {mask, kernel, bias});
  if (kernel.size(1) > kMostFusedLags) {
    return composed_convolution_silu(x_in, mask, kernel, bias, future);
  }
  const ShortConvolutionArguments in(x_in, mask, kernel, bias, future);
  const Tensor y = at::empty(x_in.sizes(), x_in.options());
  with_device_type(y, "lra::convolution_silu", [&]<typename T>(T) {
    cuda::short_convolution_forward(in.problem<T>(), mutable_data<T>(y), device.stream());
  });
  return y;
}

ConvolutionSiluGradients convolution_silu_backward(const Tensor& grad_in, const Tensor& x_in,
                                                   const Mask& mask, const Tensor& kernel,
                                                   const Tensor& bias, int64_t future) {
  const OnDeviceOf device(x_in, {grad_in, mask, kernel, bias});
  if (kernel.size(1) > kMostFusedLags) {
    return composed_convolution_silu_backward(grad_in, x_in, mask, kernel, bias, future);
  }
  const ShortConvolutionArguments in(x_in, mask, kernel, bias, future);
  const ShortConvolutionResults to(in, grad_in);
  with_device_type(x_in, "lra::convolution_silu", [&]<typename T>(T) {
    const auto p = in.problem<T>();
    const Tensor scratch =
        at::empty({cuda::short_convolution_scratch(p)}, to.of_parameters.options());
    cuda::short_convolution_backward(p, const_data<T>(to.grad), mutable_data<T>(to.of_x),
                                     to.of_parameters.mutable_data_ptr<float>(),
                                     scratch.mutable_data_ptr<float>(), device.stream());
  });
  return to.gradients();
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  GateOperators<GatesOfDevice>::add_to(m);
  m.impl("convolution_silu", convolution_silu);
  m.impl("convolution_silu_backward", convolution_silu_backward);
}

}  // namespace lra::ops::device
