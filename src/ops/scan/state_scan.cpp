#include "ops/scan/state_scan.h"

#include "ops/precision.h"
#include "ops/scan/state_scan_problem.h"

namespace lra::ops {
namespace {

Tensor states_impl(const Tensor& v, const Tensor& a, bool bidirectional, const MaybeTensor& mask) {
  const StateScanForward scan(v, a, bidirectional, mask);
  with_float_type(v, "lra::state_scan", [&]<typename T>(T) {
    kernels::state_scan_forward<T>(scan.problem<T>(), mutable_data<T>(scan.x));
  });
  return scan.x;
}

std::tuple<Tensor, Tensor> states_backward_impl(const Tensor& grad, const Tensor& x,
                                                const Tensor& a, const MaybeTensor& mask) {
  const StateScanGradients scan(grad, x, a, mask);
  with_float_type(x, "lra::state_scan",
                  [&]<typename T>(T) { kernels::state_scan_backward<T>(scan.problem<T>()); });
  return {scan.of_v, scan.of_a};
}

struct StateScanFunction : torch::autograd::Function<StateScanFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& v, const Tensor& a, bool bidirectional,
                        const MaybeTensor& mask) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor x = dispatch<"lra::state_scan", states_impl>(v, a, bidirectional, mask);
    ctx->save_for_backward({x, a, tensor_or_empty(mask)});
    return x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto s = ctx->get_saved_variables();
    const MaybeTensor mask = optional_tensor(s[2]);
    // The states, a result of this function, connect second derivatives to v.
    const auto [of_v, of_a] = at::GradMode::is_enabled()
                                  ? composed_state_scan_backward(grads[0], s[0], s[1], mask)
                                  : dispatch<"lra::state_scan_backward", states_backward_impl>(
                                        grads[0], s[0], s[1], mask);
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
  return dispatch<"lra::state_scan", states_impl>(v_BL2P, a_2P, bidirectional,
                                                  optional_tensor(mask_BL));
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
  m.impl("state_scan", applies<StateScanFunction>(states_impl));
}

}  // namespace lra::ops
