// The selective scan on a device.
#include "ops/composed.h"
#include "ops/cuda/device.h"
#include "ops/scan/selective_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

Tensor forward(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b, const Tensor& c,
               const Tensor& dt_bias, const MaybeTensor& bias, const MaybeTensor& skip,
               bool reversed, const MaybeTensor& mask, const MaybeTensor& frequency) {
  const OnDeviceOf device(x, {dt, a, b, c, dt_bias, bias, skip, mask, frequency});
  if (frequency) {  // kernels have real states
    return composed_selective_scan(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, frequency);
  }
  const SelectiveScanArguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, frequency);
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
                                const MaybeTensor&, const MaybeTensor& frequency) {
  const OnDeviceOf device(x, {grad, dt, a, b, c, dt_bias, bias, skip, mask, frequency});
  if (frequency) {
    const auto y = [&](const auto& in) {
      return variable_list{composed_selective_scan(in[0], in[1], in[2], in[3], in[4], in[5],
                                                   optional_tensor(in[6]), optional_tensor(in[7]),
                                                   reversed, mask, in[8])};
    };
    const auto of = composed_backward_pass(
        y, {x, dt, a, b, c, dt_bias, tensor_or_empty(bias), tensor_or_empty(skip), *frequency},
        {grad});
    const auto found = [&](size_t n) {
      return of[n].defined() ? of[n] : at::empty({0}, a.options());
    };
    return {of[0], of[1], of[2], of[3], of[4], of[5], found(6), found(7), of[8]};
  }
  const SelectiveScanArguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, frequency);
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
