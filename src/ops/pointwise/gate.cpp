#include "ops/pointwise/gate.h"

#include "ops/composed.h"
#include "ops/pointwise/gate_operators.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

using UnaryOrBinary = Tensor(const Tensor&, const MaybeTensor&);
using Gradients = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const MaybeTensor&);

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

Tensor call_gate(const Tensor& value, const MaybeTensor& gate) {
  static const auto op = find_op<UnaryOrBinary>("lra::gate");
  return op.call(value, gate);
}
Tensor call_silu(const Tensor& x, const MaybeTensor& factor) {
  static const auto op = find_op<UnaryOrBinary>("lra::silu");
  return op.call(x, factor);
}

template <bool kSilu>
struct GateFunction : torch::autograd::Function<GateFunction<kSilu>> {
  static constexpr const char* kName = kSilu ? "lra::silu" : "lra::gate";

  static Tensor forward(AutogradContext* ctx, const Tensor& first, const MaybeTensor& second) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({first, tensor_or_empty(second)});
    return kSilu ? call_silu(first, second) : call_gate(first, second);
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
    static const auto op = find_op<Gradients>(kSilu ? "lra::silu_backward" : "lra::gate_backward");
    const auto [of_first, of_second] = op.call(grads[0], saved[0], second);
    return {of_first, second ? of_second : Tensor()};
  }
};

}  // namespace

Tensor glu(const Tensor& x) { return call_gate(x, std::nullopt); }
Tensor gate(const Tensor& value, const Tensor& gate) { return call_gate(value, gate); }
Tensor silu(const Tensor& x, const Tensor& factor) { return call_silu(x, optional_tensor(factor)); }

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
  m.impl("gate", [](const Tensor& value, const MaybeTensor& gate) {
    return GateFunction<false>::apply(value, gate);
  });
  m.impl("silu", [](const Tensor& x, const MaybeTensor& factor) {
    return GateFunction<true>::apply(x, factor);
  });
}

}  // namespace lra::ops
