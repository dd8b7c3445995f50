#include "ops/scan/selective_scan.h"

#include "ops/composed.h"
#include "ops/precision.h"
#include "ops/scan/selective_scan_problem.h"

namespace lra::ops {
namespace {

Tensor selective_scan_impl(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                           const Tensor& c, const Tensor& dt_bias, const MaybeTensor& bias,
                           const MaybeTensor& skip, bool reversed, const MaybeTensor& mask,
                           const MaybeTensor& frequency) {
  const SelectiveScanArguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, frequency);
  const Tensor y = at::empty_like(in.x);
  with_float_type(x, "lra::selective_scan", [&]<typename T>(T) {
    kernels::selective_scan_forward<T>(in.problem<T>(), mutable_data<T>(y));
  });
  return y;
}

// y, and what its backward pass takes: float numbers, none in float64.
std::tuple<Tensor, Tensor> selective_scan_forward_impl(
    const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b, const Tensor& c,
    const Tensor& dt_bias, const MaybeTensor& bias, const MaybeTensor& skip, bool reversed,
    const MaybeTensor& mask, const MaybeTensor& frequency) {
  const SelectiveScanArguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, frequency);
  const Tensor y = at::empty_like(in.x), starts = at::empty({kept_states(x, b)}, a.options());
  with_float_type(x, "lra::selective_scan", [&]<typename T>(T) {
    kernels::selective_scan_forward<T>(
        in.problem<T>(), mutable_data<T>(y),
        starts.numel() > 0 ? starts.mutable_data_ptr<kernels::Wide<T>>() : nullptr);
  });
  return {y, starts};
}

SelectiveScanGradients selective_scan_backward_impl(
    const Tensor& grad, const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
    const Tensor& c, const Tensor& dt_bias, const MaybeTensor& bias, const MaybeTensor& skip,
    bool reversed, const MaybeTensor& mask, const MaybeTensor& starts,
    const MaybeTensor& frequency) {
  const SelectiveScanArguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, frequency);
  const SelectiveScanResults results(in, grad);
  with_float_type(x, "lra::selective_scan", [&]<typename T>(T) {
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

struct SelectiveScanFunction : torch::autograd::Function<SelectiveScanFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& dt, const Tensor& a,
                        const Tensor& b, const Tensor& c, const Tensor& dt_bias,
                        const MaybeTensor& bias, const MaybeTensor& skip, bool reversed,
                        const MaybeTensor& mask, const MaybeTensor& frequency) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->saved_data["reversed"] = reversed;
    Tensor y, starts;
    if (x.is_cpu()) {
      std::tie(y, starts) = dispatch<"lra::selective_scan_forward", selective_scan_forward_impl>(
          x, dt, a, b, c, dt_bias, bias, skip, reversed, mask, frequency);
    } else {
      y = dispatch<"lra::selective_scan", selective_scan_impl>(x, dt, a, b, c, dt_bias, bias, skip,
                                                               reversed, mask, frequency);
    }
    ctx->save_for_backward({x, dt, a, b, c, dt_bias, tensor_or_empty(bias), tensor_or_empty(skip),
                            tensor_or_empty(frequency), tensor_or_empty(mask), starts});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto s = ctx->get_saved_variables();
    const bool reversed = ctx->saved_data["reversed"].toBool();
    if (at::GradMode::is_enabled()) {
      const auto y = [&](const auto& in) {
        return variable_list{composed_selective_scan(
            in[0], in[1], in[2], in[3], in[4], in[5], optional_tensor(in[6]),
            optional_tensor(in[7]), reversed, optional_tensor(in[9]), optional_tensor(in[8]))};
      };
      const variable_list inputs(s.begin(), s.end() - 1);
      variable_list found = composed_gradients("lra::selective_scan", y, inputs, grads, 9);
      found.insert(found.begin() + 8, 2, Tensor());  // of `reversed` and the mask
      return found;
    }
    auto [of_x, of_dt, of_a, of_b, of_c, of_dt_bias, of_bias, of_skip, of_frequency] =
        dispatch<"lra::selective_scan_backward", selective_scan_backward_impl>(
            grads[0], s[0], s[1], s[2], s[3], s[4], s[5], optional_tensor(s[6]),
            optional_tensor(s[7]), reversed, optional_tensor(s[9]), optional_tensor(s[10]),
            optional_tensor(s[8]));
    if (!s[6].defined()) of_bias = Tensor();
    if (!s[7].defined()) of_skip = Tensor();
    if (!s[8].defined()) of_frequency = Tensor();
    return {of_x,    of_dt,   of_a,     of_b,     of_c,        of_dt_bias,
            of_bias, of_skip, Tensor(), Tensor(), of_frequency};
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

void check_selective_scan(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                          const Tensor& c, const Tensor& dt_bias, const MaybeTensor& bias,
                          const MaybeTensor& skip, const MaybeTensor& mask,
                          const MaybeTensor& frequency) {
  LRA_CHECK(x.dim() == 3 && a.dim() == 2 && b.dim() == 4);
  const int64_t channels = x.size(2), numbers = (frequency ? 2 : 1) * a.size(0);
  LRA_CHECK_EQ(dt.sizes(), x.sizes());
  LRA_CHECK_EQ(c.sizes(), b.sizes());
  LRA_CHECK_EQ(b.sizes().slice(0, 2), x.sizes().slice(0, 2));
  LRA_CHECK(b.size(2) > 0 && channels % b.size(2) == 0);
  LRA_CHECK(numbers == b.size(3) && a.size(1) == channels);
  for (const Tensor& t : {dt, b, c}) LRA_CHECK(t.scalar_type() == x.scalar_type());
  const auto check_parameter = [&](const MaybeTensor& t, at::IntArrayRef sizes) {
    if (!t) return;
    LRA_CHECK_EQ(t->sizes(), sizes);
    LRA_CHECK(t->scalar_type() == wide_type(x));
  };
  check_parameter(a, a.sizes());
  check_parameter(frequency, a.sizes());
  check_parameter(bias, {numbers, channels});
  check_parameter(dt_bias, {channels});
  check_parameter(skip, {channels});
  check_mask(mask, x.size(0), x.size(1));
}

Tensor selective_scan(const SelectiveScanInput& in) {
  return dispatch<"lra::selective_scan", selective_scan_impl>(
      in.x_BLD, in.dt_BLD, in.a_ND, in.b_BLGN, in.c_BLGN, in.dt_bias_D, optional_tensor(in.bias_ND),
      optional_tensor(in.skip_D), in.reversed, optional_tensor(in.mask_BL),
      optional_tensor(in.frequency_ND));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "selective_scan(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor dt_bias, "
      "Tensor? bias=None, Tensor? skip=None, bool reversed=False, Tensor? mask=None, Tensor? "
      "frequency=None) -> Tensor",
      composed_selective_scan);
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
  m.impl("selective_scan", selective_scan_impl);
  m.impl("selective_scan_forward", selective_scan_forward_impl);
  m.impl("selective_scan_backward", selective_scan_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("selective_scan", applies<SelectiveScanFunction>(selective_scan_impl));
}

}  // namespace lra::ops
