#include "ops/state_scan.h"

#include "kernels/scan/state_scan.h"
#include "ops/dispatch.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

using ScanStates = Tensor(const Tensor&, const Tensor&, bool, const MaybeTensor&);
using ScanStatesBackward = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                                      const MaybeTensor&);

// All of a problem except v; `shape` is that of x, [B, L, K, 2, P]. The tensors must outlive it.
template <typename T>
kernels::StateScan<T> state_problem(at::IntArrayRef shape, const Tensor& a, const Tensor& lengths) {
  return {.batch = shape[0],
          .length = shape[1],
          .states = shape[4],
          .directions = shape[2],
          .lengths = lengths.defined() ? lengths.const_data_ptr<int32_t>() : nullptr,
          .a = a.const_data_ptr<kernels::Wide<T>>()};
}

Tensor lengths_of(const MaybeTensor& mask) {
  return mask ? mask->sum(1, /*keepdim=*/false, at::kInt) : Tensor();
}

Tensor states_impl(const Tensor& v_in, const Tensor& a_in, bool bidirectional,
                   const MaybeTensor& mask) {
  check_state_scan(v_in, a_in, mask);
  const Tensor v = v_in.contiguous(), a = a_in.contiguous(), lengths = lengths_of(mask);
  const Tensor x =
      at::empty({v.size(0), v.size(1), bidirectional ? 2 : 1, 2, v.size(3)}, v.options());
  with_float_type(v, "lra::state_scan", [&](auto zero) {
    using T = decltype(zero);
    auto problem = state_problem<T>(x.sizes(), a, lengths);
    problem.v = const_data<T>(v);
    kernels::state_scan_forward<T>(problem, mutable_data<T>(x));
  });
  return x;
}

std::tuple<Tensor, Tensor> states_backward_impl(const Tensor& grad_in, const Tensor& x_in,
                                                const Tensor& a_in, const MaybeTensor& mask) {
  const Tensor grad = grad_in.contiguous(), x = x_in.contiguous(), a = a_in.contiguous();
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const Tensor lengths = lengths_of(mask), grad_a = at::empty_like(a);
  const Tensor grad_v = at::empty({x.size(0), x.size(1), 2, x.size(4)}, x.options());
  with_float_type(x, "lra::state_scan", [&](auto zero) {
    using T = decltype(zero);
    kernels::state_scan_backward<T>({.problem = state_problem<T>(x.sizes(), a, lengths),
                                     .x = const_data<T>(x),
                                     .grad = const_data<T>(grad),
                                     .grad_v = mutable_data<T>(grad_v),
                                     .grad_a = grad_a.mutable_data_ptr<kernels::Wide<T>>()});
  });
  return {grad_v, grad_a};
}

Tensor call_states(const Tensor& v, const Tensor& a, bool bidirectional, const MaybeTensor& mask) {
  static const auto op = find_op<ScanStates>("lra::state_scan");
  return op.call(v, a, bidirectional, mask);
}

struct StateScanFunction : torch::autograd::Function<StateScanFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& v, const Tensor& a, bool bidirectional,
                        const MaybeTensor& mask) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor x = call_states(v, a, bidirectional, mask);
    ctx->save_for_backward({x, a, tensor_or_empty(mask)});
    return x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto s = ctx->get_saved_variables();
    const MaybeTensor mask = optional_tensor(s[2]);
    static const auto op = find_op<ScanStatesBackward>("lra::state_scan_backward");
    // The states, a result of this function, connect second derivatives to v.
    const auto [of_v, of_a] = at::GradMode::is_enabled()
                                  ? composed_state_scan_backward(grads[0], s[0], s[1], mask)
                                  : op.call(grads[0], s[0], s[1], mask);
    return {of_v, of_a, Tensor(), Tensor()};
  }
};

}  // namespace

void check_state_scan(const Tensor& v, const Tensor& a, const MaybeTensor& mask) {
  LRA_CHECK(v.dim() == 4 && v.size(2) == 2);
  LRA_CHECK_EQ(a.sizes(), v.sizes().slice(2));
  LRA_CHECK(a.scalar_type() == wide_type(v));
  check_mask(mask, v.size(0), v.size(1));
}

Tensor state_scan(const Tensor& v_BL2P, const Tensor& a_2P, bool bidirectional,
                  const Tensor& mask_BL) {
  return call_states(v_BL2P, a_2P, bidirectional, optional_tensor(mask_BL));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("state_scan(Tensor v, Tensor a, bool bidirectional=False, Tensor? mask=None) -> Tensor",
        composed_state_scan);
  m.def("state_scan_backward(Tensor grad, Tensor x, Tensor a, Tensor? mask) -> (Tensor, Tensor)",
        composed_state_scan_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("state_scan", states_impl);
  m.impl("state_scan_backward", states_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("state_scan",
         [](const Tensor& v, const Tensor& a, bool bidirectional, const MaybeTensor& mask) {
           return StateScanFunction::apply(v, a, bidirectional, mask);
         });
}

}  // namespace lra::ops
