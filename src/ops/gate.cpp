#include "ops/gate.h"

#include "kernels/pointwise/gate.h"
#include "ops/composed.h"
#include "ops/even_rows.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

using UnaryOrBinary = Tensor(const Tensor&, const MaybeTensor&);
using Gradients = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const MaybeTensor&);

void check_gate(const Tensor& value, const MaybeTensor& gate) {
  LRA_CHECK(value.dim() > 0);
  if (!gate) {
    LRA_CHECK(value.size(-1) % 2 == 0);
    return;
  }
  LRA_CHECK_EQ(gate->sizes(), value.sizes());
  LRA_CHECK(gate->scalar_type() == value.scalar_type());
}

// Values and gates of one shape; values may be undefined, for 1.
struct Operands {
  Tensor value, gate;
  bool is_silu = false;

  template <typename T>
  kernels::Gate<T> problem() const {
    const int64_t columns = gate.size(-1);
    kernels::Gate<T> p{.rows = columns == 0 ? 0 : gate.numel() / columns,
                       .columns = columns,
                       .gate_stride = row_stride(gate),
                       .gate = const_data<T>(gate),
                       .is_silu = is_silu};
    if (!value.defined()) return p;
    p.value = const_data<T>(value);
    p.value_stride = row_stride(value);
    return p;
  }
};

std::vector<Tensor> halves(const Tensor& t) { return t.chunk(2, -1); }

Operands gate_operands(const Tensor& value, const MaybeTensor& gate) {
  check_gate(value, gate);
  const auto both = gate ? std::vector{value, *gate} : halves(value);
  return {with_even_rows(both[0]), with_even_rows(both[1])};
}

Operands silu_operands(const Tensor& x, const MaybeTensor& factor) {
  if (factor) check_gate(x, factor);
  return {factor ? with_even_rows(*factor) : Tensor(), with_even_rows(x), /*is_silu=*/true};
}

Tensor forward_of(const Operands& in) {
  const Tensor y = at::empty(in.gate.sizes(), in.gate.options());
  with_float_type(y, "lra::gate", [&](auto zero) {
    using T = decltype(zero);
    kernels::gate_forward<T>(in.problem<T>(), mutable_data<T>(y));
  });
  return y;
}

// Writes the gradients, of_value unless it is undefined; their rows lie the same distance apart.
void write_gradients(const Operands& in, const Tensor& grad_in, const Tensor& of_value,
                     const Tensor& of_gate) {
  const Tensor grad = grad_in.contiguous();
  LRA_CHECK_EQ(grad.sizes(), in.gate.sizes());
  with_float_type(grad, "lra::gate", [&](auto zero) {
    using T = decltype(zero);
    kernels::GateGradients<T> to{.gate_stride = row_stride(of_gate),
                                 .gate = mutable_data<T>(of_gate)};
    if (of_value.defined()) {
      to.value = mutable_data<T>(of_value);
      to.value_stride = row_stride(of_value);
    }
    kernels::gate_backward<T>(in.problem<T>(), const_data<T>(grad), to);
  });
}

Tensor same_sizes(const Tensor& t) { return at::empty(t.sizes(), t.options()); }

Tensor gate_on_cpu(const Tensor& value, const MaybeTensor& gate) {
  return forward_of(gate_operands(value, gate));
}
Tensor silu_on_cpu(const Tensor& x, const MaybeTensor& factor) {
  return forward_of(silu_operands(x, factor));
}

// The second gradient is empty without a second input.
std::tuple<Tensor, Tensor> gate_backward_on_cpu(const Tensor& grad, const Tensor& value,
                                                const MaybeTensor& gate) {
  const Operands in = gate_operands(value, gate);
  const Tensor of_value = same_sizes(value);
  const Tensor of_gate = gate ? same_sizes(value) : at::empty({0}, value.options());
  const auto both = gate ? std::vector{of_value, of_gate} : halves(of_value);
  write_gradients(in, grad, both[0], both[1]);
  return {of_value, of_gate};
}
std::tuple<Tensor, Tensor> silu_backward_on_cpu(const Tensor& grad, const Tensor& x,
                                                const MaybeTensor& factor) {
  const Tensor of_x = same_sizes(x), of_factor = factor ? same_sizes(x) : Tensor();
  write_gradients(silu_operands(x, factor), grad, of_factor, of_x);
  return {of_x, factor ? of_factor : at::empty({0}, x.options())};
}

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

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("gate", gate_on_cpu);
  m.impl("gate_backward", gate_backward_on_cpu);
  m.impl("silu", silu_on_cpu);
  m.impl("silu_backward", silu_backward_on_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("gate", [](const Tensor& value, const MaybeTensor& gate) {
    return GateFunction<false>::apply(value, gate);
  });
  m.impl("silu", [](const Tensor& x, const MaybeTensor& factor) {
    return GateFunction<true>::apply(x, factor);
  });
}

}  // namespace lra::ops
