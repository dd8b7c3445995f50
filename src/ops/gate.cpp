#include "ops/gate.h"

#include "kernels/pointwise/gate.h"
#include "ops/composed.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

using GateForward = Tensor(const Tensor&, const MaybeTensor&);
using GateBackward = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const MaybeTensor&);

void check_gate(const Tensor& value, const MaybeTensor& gate) {
  LRA_CHECK(value.dim() > 0);
  if (!gate) {
    LRA_CHECK(value.size(-1) % 2 == 0);
    return;
  }
  LRA_CHECK_EQ(gate->sizes(), value.sizes());
  LRA_CHECK(gate->scalar_type() == value.scalar_type());
}

// Rows of value and gate; without `gate`, halves of the rows of `value`.
template <typename T>
kernels::Gate<T> gate_problem(const Tensor& value, const MaybeTensor& gate) {
  const int64_t width = value.size(-1), columns = gate ? width : width / 2;
  return {.rows = width == 0 ? 0 : value.numel() / width,
          .columns = columns,
          .value_stride = width,
          .gate_stride = width,
          .value = const_data<T>(value),
          .gate = gate ? const_data<T>(*gate) : const_data<T>(value) + columns};
}

Tensor gate_forward_impl(const Tensor& value_in, const MaybeTensor& gate_in) {
  check_gate(value_in, gate_in);
  const Tensor value = value_in.contiguous();
  const MaybeTensor gate = gate_in ? MaybeTensor(gate_in->contiguous()) : gate_in;
  auto shape = value.sizes().vec();
  if (!gate) shape.back() /= 2;
  const Tensor y = at::empty(shape, value.options());
  with_float_type(value, "lra::gate", [&](auto zero) {
    using T = decltype(zero);
    kernels::gate_forward<T>(gate_problem<T>(value, gate), mutable_data<T>(y));
  });
  return y;
}

// The second gradient is empty without a second input.
std::tuple<Tensor, Tensor> gate_backward_impl(const Tensor& grad_in, const Tensor& value_in,
                                              const MaybeTensor& gate_in) {
  check_gate(value_in, gate_in);
  const Tensor grad = grad_in.contiguous(), value = value_in.contiguous();
  const MaybeTensor gate = gate_in ? MaybeTensor(gate_in->contiguous()) : gate_in;
  LRA_CHECK_EQ(grad.numel(), gate ? value.numel() : value.numel() / 2);
  const Tensor grad_value = at::empty_like(value);
  const Tensor grad_gate = gate ? at::empty_like(value) : at::empty({0}, value.options());
  with_float_type(value, "lra::gate", [&](auto zero) {
    using T = decltype(zero);
    const auto p = gate_problem<T>(value, gate);
    T* const of_value = mutable_data<T>(grad_value);
    kernels::gate_backward<T>(p, const_data<T>(grad), of_value,
                              gate ? mutable_data<T>(grad_gate) : of_value + p.columns);
  });
  return {grad_value, grad_gate};
}

Tensor composed_gate(const Tensor& value, const MaybeTensor& gate) {
  check_gate(value, gate);
  const auto halves = gate ? std::vector{value, *gate} : value.chunk(2, -1);
  return halves[0] * halves[1].sigmoid();
}

Tensor call_gate(const Tensor& value, const MaybeTensor& gate) {
  static const auto op = find_op<GateForward>("lra::gate");
  return op.call(value, gate);
}

struct GateFunction : torch::autograd::Function<GateFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& value, const MaybeTensor& gate) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({value, tensor_or_empty(gate)});
    return call_gate(value, gate);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    if (at::GradMode::is_enabled()) {
      return composed_gradients(
          "lra::gate",
          [](const auto& in) {
            return variable_list{composed_gate(in[0], optional_tensor(in[1]))};
          },
          saved, grads, 2);
    }
    static const auto op = find_op<GateBackward>("lra::gate_backward");
    const auto [of_value, of_gate] = op.call(grads[0], saved[0], optional_tensor(saved[1]));
    return {of_value, saved[1].defined() ? of_gate : Tensor()};
  }
};

}  // namespace

Tensor glu(const Tensor& x) { return call_gate(x, std::nullopt); }
Tensor gate(const Tensor& value, const Tensor& gate) { return call_gate(value, gate); }

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("gate(Tensor value, Tensor? gate=None) -> Tensor", composed_gate);
  m.def("gate_backward(Tensor grad, Tensor value, Tensor? gate=None) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("gate", gate_forward_impl);
  m.impl("gate_backward", gate_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("gate", [](const Tensor& value, const MaybeTensor& gate) {
    return GateFunction::apply(value, gate);
  });
}

}  // namespace lra::ops
