// The operators of ops/gate.h on any device: `Kernels` has forward and backward passes for the
// problems of kernels/pointwise/gate.h, and with_type, which calls a function with a value of a
// tensor's element type.
#pragma once

#include "kernels/pointwise/gate.h"
#include "ops/dispatch.h"
#include "ops/even_rows.h"

namespace lra::ops {

inline std::vector<Tensor> halves(const Tensor& t) { return t.chunk(2, -1); }

inline void check_gate(const Tensor& value, const MaybeTensor& gate) {
  LRA_CHECK(value.dim() > 0);
  if (!gate) {
    LRA_CHECK(value.size(-1) % 2 == 0);
    return;
  }
  LRA_CHECK_EQ(gate->sizes(), value.sizes());
  LRA_CHECK(gate->scalar_type() == value.scalar_type());
}

// Values and gates of one shape; values may be undefined, for 1.
struct GateOperands {
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

template <typename Kernels>
struct GateOperators {
  static void add_to(torch::Library& m) {
    m.impl("gate", gate);
    m.impl("gate_backward", gate_backward);
    m.impl("silu", silu);
    m.impl("silu_backward", silu_backward);
  }

 private:
  static GateOperands gate_operands(const Tensor& value, const MaybeTensor& gate) {
    check_gate(value, gate);
    const auto both = gate ? std::vector{value, *gate} : halves(value);
    return {with_even_rows(both[0]), with_even_rows(both[1])};
  }
  static GateOperands silu_operands(const Tensor& x, const MaybeTensor& factor) {
    if (factor) check_gate(x, factor);
    return {factor ? with_even_rows(*factor) : Tensor(), with_even_rows(x), /*is_silu=*/true};
  }

  static Tensor forward_of(const GateOperands& in) {
    const Tensor y = at::empty(in.gate.sizes(), in.gate.options());
    Kernels::with_type(y, [&]<typename T>(T) {
      Kernels::template forward<T>(in.problem<T>(), mutable_data<T>(y), y);
    });
    return y;
  }

  // Writes the gradients, of_value unless it is undefined; their rows lie the same distance apart.
  static void write_gradients(const GateOperands& in, const Tensor& grad_in, const Tensor& of_value,
                              const Tensor& of_gate) {
    const Tensor grad = grad_in.contiguous();
    LRA_CHECK_EQ(grad.sizes(), in.gate.sizes());
    Kernels::with_type(grad, [&]<typename T>(T) {
      kernels::GateGradients<T> to{.gate_stride = row_stride(of_gate),
                                   .gate = mutable_data<T>(of_gate)};
      if (of_value.defined()) {
        to.value = mutable_data<T>(of_value);
        to.value_stride = row_stride(of_value);
      }
      Kernels::template backward<T>(in.problem<T>(), const_data<T>(grad), to, grad);
    });
  }

  static Tensor same_sizes(const Tensor& t) { return at::empty(t.sizes(), t.options()); }

  static Tensor gate(const Tensor& value, const MaybeTensor& gate) {
    return forward_of(gate_operands(value, gate));
  }
  static Tensor silu(const Tensor& x, const MaybeTensor& factor) {
    return forward_of(silu_operands(x, factor));
  }

  // The second gradient is empty without a second input.
  static std::tuple<Tensor, Tensor> gate_backward(const Tensor& grad, const Tensor& value,
                                                  const MaybeTensor& gate) {
    const GateOperands in = gate_operands(value, gate);
    const Tensor of_value = same_sizes(value);
    const Tensor of_gate = gate ? same_sizes(value) : at::empty({0}, value.options());
    const auto both = gate ? std::vector{of_value, of_gate} : halves(of_value);
    write_gradients(in, grad, both[0], both[1]);
    return {of_value, of_gate};
  }
  static std::tuple<Tensor, Tensor> silu_backward(const Tensor& grad, const Tensor& x,
                                                  const MaybeTensor& factor) {
    const Tensor of_x = same_sizes(x), of_factor = factor ? same_sizes(x) : Tensor();
    write_gradients(silu_operands(x, factor), grad, of_factor, of_x);
    return {of_x, factor ? of_factor : at::empty({0}, x.options())};
  }
};

}  // namespace lra::ops
