#include "ops/pointwise/gate.h"

#include "ops/composed.h"
#include "ops/pointwise/gate_operators.h"

namespace lra::ops {
namespace {

struct GatesOfCpu {
  template <typename F>
  static void with_type(const Tensor& t, F f) {
    with_float_type(t, "lra::gate", f);
  }
  template <typename T>
  static void forward(const kernels::Gate<T>& p, T* y, const Tensor&) {
    kernels::gate_forward<T>(p, y);
  }
  template <typename T>
  static void backward(const kernels::Gate<T>& p, const T* grad,
                       const kernels::GateGradients<T>& to, const Tensor&) {
    kernels::gate_backward<T>(p, grad, to);
  }
};

Tensor composed_gate(const Tensor& value, const MaybeTensor& gate) {
  check_gate(value, gate);
  const auto both = gate ? std::vector{value, *gate} : halves(value);
  return both[0] * both[1].sigmoid();
}
Tensor composed_silu(const Tensor& x, const MaybeTensor& factor) {
  if (factor) check_gate(x, factor);
  const Tensor y = x * x.sigmoid();
  return factor ? *factor * y : y;
}

std::tuple<Tensor, Tensor> composed_gate_backward(const Tensor& grad, const Tensor& value,
                                                  const MaybeTensor& gate) {
  const auto both = gate ? std::vector{value, *gate} : halves(value);
  const Tensor open = both[1].sigmoid();
  const Tensor of_value = grad * open, of_gate = of_value * both[0] * (1 - open);
  if (gate) return {of_value, of_gate};
  return {at::cat({of_value, of_gate}, -1), at::empty({0}, value.options())};
}
std::tuple<Tensor, Tensor> composed_silu_backward(const Tensor& grad, const Tensor& x,
                                                  const MaybeTensor& factor) {
  const Tensor open = x.sigmoid(), of_x = grad * open * (1 + x * (1 - open));
  if (!factor) return {of_x, at::empty({0}, x.options())};
  return {of_x * *factor, grad * x * open};
}

template <bool kSilu>
struct GateFunction : torch::autograd::Function<GateFunction<kSilu>> {
  static constexpr const char* kName = kSilu ? "lra::silu" : "lra::gate";

  static Tensor forward(AutogradContext* ctx, const Tensor& first, const MaybeTensor& second) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({first, tensor_or_empty(second)});
    return kSilu ? dispatch<"lra::silu", composed_silu>(first, second)
                 : dispatch<"lra::gate", composed_gate>(first, second);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const MaybeTensor second = optional_tensor(saved[1]);
    if (at::GradMode::is_enabled()) {
      return composed_gradients(
          kName,
          [](const auto& in) {
            const auto composed = kSilu ? composed_silu : composed_gate;
            return variable_list{composed(in[0], optional_tensor(in[1]))};
          },
          saved, grads, 2);
    }
    const auto [of_first, of_second] =
        kSilu ? dispatch<"lra::silu_backward", composed_silu_backward>(grads[0], saved[0], second)
              : dispatch<"lra::gate_backward", composed_gate_backward>(grads[0], saved[0], second);
    return {of_first, second ? of_second : Tensor()};
  }
};

}  // namespace

Tensor glu(const Tensor& x) { return dispatch<"lra::gate", composed_gate>(x, std::nullopt); }
Tensor gate(const Tensor& value, const Tensor& gate) {
  return dispatch<"lra::gate", composed_gate>(value, gate);
}
Tensor silu(const Tensor& x, const Tensor& factor) {
  return dispatch<"lra::silu", composed_silu>(x, optional_tensor(factor));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("gate(Tensor value, Tensor? gate=None) -> Tensor", composed_gate);
  m.def("gate_backward(Tensor grad, Tensor value, Tensor? gate=None) -> (Tensor, Tensor)",
        composed_gate_backward);
  m.def("silu(Tensor x, Tensor? factor=None) -> Tensor", composed_silu);
  m.def("silu_backward(Tensor grad, Tensor x, Tensor? factor=None) -> (Tensor, Tensor)",
        composed_silu_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) { GateOperators<GatesOfCpu>::add_to(m); }

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("gate", applies<GateFunction<false>>(composed_gate));
  m.impl("silu", applies<GateFunction<true>>(composed_silu));
}

}  // namespace lra::ops
