// The selective scan on a device.
#include "ops/composed.h"
#include "ops/cuda/device.h"
#include "ops/scan/selective_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

constexpr int64_t kMostComplexStates = 256;  // that kernels take
bool is_composed(const SelectiveScanInput& in) {
  return in.frequency_ND.defined() && in.a_ND.size(0) > kMostComplexStates;
}

Tensor forward(const SelectiveScanInput& input) {
  const OnDeviceOf device(input.x_BLD,
                          {input.dt_BLD, input.a_ND, input.b_BLGN, input.c_BLGN, input.dt_bias_D,
                           input.bias_ND, input.skip_D, input.mask_BL, input.frequency_ND});
  const SelectiveScanArguments in(input);
  if (is_composed(input)) return composed_selective_scan(input);
  const Tensor y = at::empty_like(in.x);
  with_device_type(y, "lra::selective_scan", [&]<typename T>(T) {
    cuda::selective_scan_forward<T>(in.problem<T>(), mutable_data<T>(y), device.stream());
  });
  return y;
}

// The gradients by the composed version.
SelectiveScanGradients composed_backward_of(const Tensor& grad, const SelectiveScanInput& in) {
  const auto y = [&](const auto& t) {
    return variable_list{composed_selective_scan(
        {t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], in.reversed, in.mask_BL, t[8]})};
  };
  const auto of = composed_backward_pass(y,
                                         {in.x_BLD, in.dt_BLD, in.a_ND, in.b_BLGN, in.c_BLGN,
                                          in.dt_bias_D, in.bias_ND, in.skip_D, in.frequency_ND},
                                         {grad});
  const auto found = [&](size_t n) {
    return of[n].defined() ? of[n] : at::empty({0}, in.a_ND.options());
  };
  return {of[0], of[1], of[2], of[3], of[4], of[5], found(6), found(7), of[8]};
}

SelectiveScanGradients backward(const Tensor& grad, const SelectiveScanInput& input,
                                const MaybeTensor&) {
  const OnDeviceOf device(
      input.x_BLD, {grad, input.dt_BLD, input.a_ND, input.b_BLGN, input.c_BLGN, input.dt_bias_D,
                    input.bias_ND, input.skip_D, input.mask_BL, input.frequency_ND});
  const SelectiveScanArguments in(input);
  if (is_composed(input)) return composed_backward_of(grad, input);
  const SelectiveScanResults results(in, grad);
  with_device_type(in.x, "lra::selective_scan", [&]<typename T>(T) {
    const auto problem = results.problem<T>();
    const Tensor scratch =
        at::empty({cuda::selective_scan_scratch(problem.problem)}, in.a.options());
    cuda::selective_scan_backward<T>(problem, scratch.mutable_data_ptr<float>(), device.stream());
  });
  return results.gradients();
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("selective_scan", selective_scan_kernel<forward>);
  m.impl("selective_scan_backward", selective_scan_backward_kernel<backward>);
}

}  // namespace lra::ops::device
