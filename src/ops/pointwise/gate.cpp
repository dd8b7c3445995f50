#include "ops/pointwise/gate.h"

#include "ops/fused_function.h"
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

struct GateFunction : FusedOperator<GateFunction, "lra::gate", composed_gate, "lra::gate_backward",
                                    composed_gate_backward> {};
struct SiluFunction : FusedOperator<SiluFunction, "lra::silu", composed_silu, "lra::silu_backward",
                                    composed_silu_backward> {};

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
  m.impl("gate", applies<GateFunction>(composed_gate));
  m.impl("silu", applies<SiluFunction>(composed_silu));
}

}  // namespace lra::ops
