#include "ops/scan/selective_scan.h"

#include "ops/fused_function.h"
#include "ops/precision.h"
#include "ops/scan/selective_scan_problem.h"

namespace lra::ops {
namespace {

Tensor selective_scan_on_cpu(const SelectiveScanInput& input) {
  const SelectiveScanArguments in(input);
  const Tensor y = at::empty_like(in.x);
  with_float_type(y, "lra::selective_scan", [&]<typename T>(T) {
    kernels::selective_scan_forward<T>(in.problem<T>(), mutable_data<T>(y));
  });
  return y;
}

// y, and what its backward pass takes: float numbers, none in float64.
std::tuple<Tensor, Tensor> selective_scan_forward_on_cpu(const SelectiveScanInput& input) {
  const SelectiveScanArguments in(input);
  const Tensor y = at::empty_like(in.x),
               starts = at::empty({kept_states(in.x, in.b)}, in.a.options());
  with_float_type(y, "lra::selective_scan", [&]<typename T>(T) {
    kernels::selective_scan_forward<T>(
        in.problem<T>(), mutable_data<T>(y),
        starts.numel() > 0 ? starts.mutable_data_ptr<kernels::Wide<T>>() : nullptr);
  });
  return {y, starts};
}

SelectiveScanGradients selective_scan_backward_on_cpu(const Tensor& grad,
                                                      const SelectiveScanInput& input,
                                                      const MaybeTensor& starts) {
  const SelectiveScanArguments in(input);
  const SelectiveScanResults results(in, grad);
  with_float_type(in.x, "lra::selective_scan", [&]<typename T>(T) {
    auto problem = results.problem<T>();
    if (starts && starts->numel() > 0) {
      LRA_CHECK(starts->is_contiguous());
      LRA_CHECK_EQ(starts->numel(), kernels::selective_starts(problem.problem));
      problem.starts = starts->const_data_ptr<kernels::Wide<T>>();
    }
    kernels::selective_scan_backward<T>(problem);
  });
  return results.gradients();
}

constexpr auto kComposedSelectiveScan = selective_scan_kernel<composed_selective_scan>;
constexpr auto kSelectiveScanForward = selective_scan_kernel<selective_scan_forward_on_cpu>;
constexpr auto kSelectiveScanBackward =
    selective_scan_backward_kernel<selective_scan_backward_on_cpu>;

struct SelectiveScanFunction : FusedFunction<SelectiveScanFunction, kComposedSelectiveScan> {
  static constexpr const char* kName = "lra::selective_scan";
  static constexpr size_t kMask = 8;

  template <typename... Others>
  static variable_list fused(const Tensor& x, const Others&... others) {
    if (!x.is_cpu()) {
      return {dispatch<"lra::selective_scan", kComposedSelectiveScan>(x, others...), Tensor()};
    }
    const auto [y, starts] =
        dispatch<"lra::selective_scan_forward", kSelectiveScanForward>(x, others...);
    return {y, starts};
  }
  static auto gradients(const Tensor& grad, const variable_list& starts, const Tensor& x,
                        const Tensor& dt, const Tensor& a, const Tensor& b, const Tensor& c,
                        const Tensor& dt_bias, const MaybeTensor& bias, const MaybeTensor& skip,
                        bool reversed, const MaybeTensor& mask, const MaybeTensor& frequency) {
    return dispatch<"lra::selective_scan_backward", kSelectiveScanBackward>(
        grad, x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, optional_tensor(starts[0]),
        frequency);
  }
};

}  // namespace

int64_t kept_states(const Tensor& x, const Tensor& b) {
  if (x.scalar_type() == at::kDouble) return 0;
  return kernels::selective_starts(kernels::SelectiveScan<float>{.batch = x.size(0),
                                                                 .length = x.size(1),
                                                                 .channels = x.size(2),
                                                                 .states = b.size(3),
                                                                 .groups = b.size(2)});
}

void check_selective_scan(const SelectiveScanInput& in) {
  const Tensor &x = in.x_BLD, &a = in.a_ND, &b = in.b_BLGN;
  LRA_CHECK(x.dim() == 3 && a.dim() == 2 && b.dim() == 4);
  const int64_t channels = x.size(2), numbers = (in.frequency_ND.defined() ? 2 : 1) * a.size(0);
  LRA_CHECK_EQ(in.dt_BLD.sizes(), x.sizes());
  LRA_CHECK_EQ(in.c_BLGN.sizes(), b.sizes());
  LRA_CHECK_EQ(b.sizes().slice(0, 2), x.sizes().slice(0, 2));
  LRA_CHECK(b.size(2) > 0 && channels % b.size(2) == 0);
  LRA_CHECK(numbers == b.size(3) && a.size(1) == channels);
  for (const Tensor& t : {in.dt_BLD, b, in.c_BLGN}) LRA_CHECK(t.scalar_type() == x.scalar_type());
  const auto check_parameter = [&](const Tensor& t, at::IntArrayRef sizes) {
    if (!t.defined()) return;
    LRA_CHECK_EQ(t.sizes(), sizes);
    LRA_CHECK(t.scalar_type() == wide_type(x));
  };
  check_parameter(a, a.sizes());
  check_parameter(in.frequency_ND, a.sizes());
  check_parameter(in.bias_ND, {numbers, channels});
  check_parameter(in.dt_bias_D, {channels});
  check_parameter(in.skip_D, {channels});
  check_mask(optional_tensor(in.mask_BL), x.size(0), x.size(1));
}

Tensor selective_scan(const SelectiveScanInput& in) {
  return dispatch<"lra::selective_scan", kComposedSelectiveScan>(
      in.x_BLD, in.dt_BLD, in.a_ND, in.b_BLGN, in.c_BLGN, in.dt_bias_D, optional_tensor(in.bias_ND),
      optional_tensor(in.skip_D), in.reversed, optional_tensor(in.mask_BL),
      optional_tensor(in.frequency_ND));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "selective_scan(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor dt_bias, "
      "Tensor? bias=None, Tensor? skip=None, bool reversed=False, Tensor? mask=None, Tensor? "
      "frequency=None) -> Tensor",
      kComposedSelectiveScan);
  m.def(
      "selective_scan_backward(Tensor grad, Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, "
      "Tensor dt_bias, Tensor? bias, Tensor? skip, bool reversed, Tensor? mask, Tensor? "
      "starts=None, Tensor? frequency=None) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, "
      "Tensor, Tensor, Tensor)");
  m.def(
      "selective_scan_forward(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor dt_bias, "
      "Tensor? bias, Tensor? skip, bool reversed, Tensor? mask, Tensor? frequency) -> (Tensor, "
      "Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("selective_scan", selective_scan_kernel<selective_scan_on_cpu>);
  m.impl("selective_scan_forward", kSelectiveScanForward);
  m.impl("selective_scan_backward", kSelectiveScanBackward);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("selective_scan", applies<SelectiveScanFunction>(kComposedSelectiveScan));
}

}  // namespace lra::ops
