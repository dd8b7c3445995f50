#include "ops/selective_scan.h"

#include "kernels/scan/selective_scan.h"
#include "ops/composed.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

using Forward = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                       const Tensor&, const MaybeTensor&, const MaybeTensor&, bool,
                       const MaybeTensor&);
// Gradients of x, dt, a, b, c, dt_bias, bias and skip.
using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
using Backward = Gradients(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                           const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&,
                           const MaybeTensor&, bool, const MaybeTensor&);

// The arguments of an operator, checked, contiguous, and as the kernels take them.
struct Arguments {
  Arguments(const Tensor& x_in, const Tensor& dt_in, const Tensor& a_in, const Tensor& b_in,
            const Tensor& c_in, const Tensor& dt_bias_in, const MaybeTensor& bias_in,
            const MaybeTensor& skip_in, bool reversed, const MaybeTensor& mask)
      : reversed(reversed) {
    check_selective_scan(x_in, dt_in, a_in, b_in, c_in, dt_bias_in, bias_in, skip_in, mask);
    x = x_in.contiguous();
    dt = dt_in.contiguous();
    a = a_in.contiguous();
    b = b_in.contiguous();
    c = c_in.contiguous();
    dt_bias = dt_bias_in.contiguous();
    if (bias_in) bias = bias_in->contiguous();
    if (skip_in) skip = skip_in->contiguous();
    if (mask) lengths = mask->sum(1, /*keepdim=*/false, at::kInt);
  }

  template <typename T>
  kernels::SelectiveScan<T> problem() const {
    using W = kernels::Wide<T>;
    const auto optional = [](const Tensor& t) {
      return t.defined() ? t.const_data_ptr<W>() : nullptr;
    };
    return {.batch = x.size(0),
            .length = x.size(1),
            .channels = x.size(2),
            .states = a.size(0),
            .groups = b.size(2),
            .reversed = reversed,
            .x = const_data<T>(x),
            .raw_dt = const_data<T>(dt),
            .b = const_data<T>(b),
            .c = const_data<T>(c),
            .lengths = lengths.defined() ? lengths.const_data_ptr<int32_t>() : nullptr,
            .a = a.const_data_ptr<W>(),
            .bias = optional(bias),
            .dt_bias = dt_bias.const_data_ptr<W>(),
            .skip = optional(skip)};
  }

  Tensor x, dt, a, b, c, dt_bias, bias, skip, lengths;
  bool reversed;
};

Tensor forward_impl(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                    const Tensor& c, const Tensor& dt_bias, const MaybeTensor& bias,
                    const MaybeTensor& skip, bool reversed, const MaybeTensor& mask) {
  const Arguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask);
  const Tensor y = at::empty_like(in.x);
  with_float_type(x, "lra::selective_scan", [&](auto zero) {
    using T = decltype(zero);
    kernels::selective_scan_forward<T>(in.problem<T>(), mutable_data<T>(y));
  });
  return y;
}

Gradients backward_impl(const Tensor& grad_in, const Tensor& x, const Tensor& dt, const Tensor& a,
                        const Tensor& b, const Tensor& c, const Tensor& dt_bias,
                        const MaybeTensor& bias, const MaybeTensor& skip, bool reversed,
                        const MaybeTensor& mask) {
  const Arguments in(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask);
  const Tensor grad = grad_in.contiguous();
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const Tensor of_x = at::empty_like(in.x), of_dt = at::empty_like(in.x);
  const Tensor of_b = at::empty_like(in.b), of_c = at::empty_like(in.c);
  const int64_t channels = x.size(2), pairs = a.numel();
  const Tensor of_parameters = at::empty({2 * pairs + 2 * channels}, a.options());
  with_float_type(x, "lra::selective_scan", [&](auto zero) {
    using T = decltype(zero);
    kernels::selective_scan_backward<T>(
        {.problem = in.problem<T>(),
         .grad = const_data<T>(grad),
         .grad_x = mutable_data<T>(of_x),
         .grad_dt = mutable_data<T>(of_dt),
         .grad_b = mutable_data<T>(of_b),
         .grad_c = mutable_data<T>(of_c),
         .grad_parameters = of_parameters.mutable_data_ptr<kernels::Wide<T>>()});
  });
  const auto parts = of_parameters.split_with_sizes({pairs, pairs, channels, channels});
  return {of_x, of_dt,    parts[0].view(a.sizes()), of_b,
          of_c, parts[2], parts[1].view(a.sizes()), parts[3]};
}

template <typename... Arguments>
Tensor call_scan(const Arguments&... arguments) {
  static const auto op = find_op<Forward>("lra::selective_scan");
  return op.call(arguments...);
}

struct SelectiveScanFunction : torch::autograd::Function<SelectiveScanFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& dt, const Tensor& a,
                        const Tensor& b, const Tensor& c, const Tensor& dt_bias,
                        const MaybeTensor& bias, const MaybeTensor& skip, bool reversed,
                        const MaybeTensor& mask) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->saved_data["reversed"] = reversed;
    ctx->save_for_backward({x, dt, a, b, c, dt_bias, tensor_or_empty(bias), tensor_or_empty(skip),
                            tensor_or_empty(mask)});
    return call_scan(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto s = ctx->get_saved_variables();
    const bool reversed = ctx->saved_data["reversed"].toBool();
    if (at::GradMode::is_enabled()) {
      const auto y = [&](const auto& in) {
        return variable_list{composed_selective_scan(in[0], in[1], in[2], in[3], in[4], in[5],
                                                     optional_tensor(in[6]), optional_tensor(in[7]),
                                                     reversed, optional_tensor(in[8]))};
      };
      variable_list found = composed_gradients("lra::selective_scan", y, s, grads, 9);
      found.insert(found.begin() + 8, Tensor());  // of `reversed`
      return found;
    }
    static const auto op = find_op<Backward>("lra::selective_scan_backward");
    auto [of_x, of_dt, of_a, of_b, of_c, of_dt_bias, of_bias, of_skip] =
        op.call(grads[0], s[0], s[1], s[2], s[3], s[4], s[5], optional_tensor(s[6]),
                optional_tensor(s[7]), reversed, optional_tensor(s[8]));
    return {of_x,
            of_dt,
            of_a,
            of_b,
            of_c,
            of_dt_bias,
            s[6].defined() ? of_bias : Tensor(),
            s[7].defined() ? of_skip : Tensor(),
            Tensor(),
            Tensor()};
  }
};

}  // namespace

void check_selective_scan(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                          const Tensor& c, const Tensor& dt_bias, const MaybeTensor& bias,
                          const MaybeTensor& skip, const MaybeTensor& mask) {
  LRA_CHECK(x.dim() == 3 && a.dim() == 2 && b.dim() == 4);
  const int64_t channels = x.size(2);
  LRA_CHECK_EQ(dt.sizes(), x.sizes());
  LRA_CHECK_EQ(c.sizes(), b.sizes());
  LRA_CHECK_EQ(b.sizes().slice(0, 2), x.sizes().slice(0, 2));
  LRA_CHECK(b.size(2) > 0 && channels % b.size(2) == 0);
  LRA_CHECK(a.size(0) == b.size(3) && a.size(1) == channels);
  for (const Tensor& t : {dt, b, c}) LRA_CHECK(t.scalar_type() == x.scalar_type());
  const auto check_parameter = [&](const MaybeTensor& t, at::IntArrayRef sizes) {
    if (!t) return;
    LRA_CHECK_EQ(t->sizes(), sizes);
    LRA_CHECK(t->scalar_type() == wide_type(x));
  };
  check_parameter(a, a.sizes());
  check_parameter(bias, a.sizes());
  check_parameter(dt_bias, {channels});
  check_parameter(skip, {channels});
  check_mask(mask, x.size(0), x.size(1));
}

Tensor selective_scan(const SelectiveScanInput& in) {
  return call_scan(in.x_BLD, in.dt_BLD, in.a_ND, in.b_BLGN, in.c_BLGN, in.dt_bias_D,
                   optional_tensor(in.bias_ND), optional_tensor(in.skip_D), in.reversed,
                   optional_tensor(in.mask_BL));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "selective_scan(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor dt_bias, "
      "Tensor? bias=None, Tensor? skip=None, bool reversed=False, Tensor? mask=None) -> Tensor",
      composed_selective_scan);
  m.def(
      "selective_scan_backward(Tensor grad, Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, "
      "Tensor dt_bias, Tensor? bias, Tensor? skip, bool reversed, Tensor? mask) -> (Tensor, "
      "Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("selective_scan", forward_impl);
  m.impl("selective_scan_backward", backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("selective_scan", [](const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                              const Tensor& c, const Tensor& dt_bias, const MaybeTensor& bias,
                              const MaybeTensor& skip, bool reversed, const MaybeTensor& mask) {
    return SelectiveScanFunction::apply(x, dt, a, b, c, dt_bias, bias, skip, reversed, mask);
  });
}

}  // namespace lra::ops
