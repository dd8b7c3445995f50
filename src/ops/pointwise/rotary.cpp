#include "ops/pointwise/rotary.h"

#include "kernels/pointwise/rotary.h"
#include "ops/composed.h"
#include "ops/even_rows.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

void check_rotary(const Tensor& x, const Tensor& table) {
  LRA_CHECK(x.dim() == 4 && table.dim() == 2);
  LRA_CHECK_EQ(table.size(0), x.size(1));
  LRA_CHECK_EQ(table.size(1), x.size(3));
  LRA_CHECK_EQ(x.size(3) % 2, 0);
  LRA_CHECK(table.scalar_type() == wide_type(x));
}

Tensor composed_rotary(const Tensor& x, const Tensor& table, bool back) {
  check_rotary(x, table);
  const auto of_table = table.unflatten(1, {-1, 2}).unsqueeze(1).unbind(3);
  const Tensor sine = back ? -of_table[0] : of_table[0], &cosine = of_table[1];
  const auto pair = x.to(wide_type(x)).unflatten(3, {-1, 2}).unbind(4);
  return at::stack({pair[0] * cosine - pair[1] * sine, pair[0] * sine + pair[1] * cosine}, 4)
      .flatten(3)
      .to(x.scalar_type());
}

Tensor rotary_on_cpu(const Tensor& x_in, const Tensor& table_in, bool back) {
  check_rotary(x_in, table_in);
  const Tensor x = with_even_rows(x_in.flatten(2)), table = table_in.contiguous();
  const Tensor y = at::empty(x_in.sizes(), x_in.options());
  with_float_type(x, "lra::rotary", [&]<typename T>(T) {
    kernels::rotary<T>({.batch = x_in.size(0),
                        .length = x_in.size(1),
                        .heads = x_in.size(2),
                        .width = x_in.size(3),
                        .row_stride = row_stride(x),
                        .x = const_data<T>(x),
                        .table = const_data<kernels::Wide<T>>(table),
                        .back = back},
                       mutable_data<T>(y));
  });
  return y;
}

Tensor call_rotary(const Tensor& x, const Tensor& table, bool back) {
  return dispatch<"lra::rotary", rotary_on_cpu>(x, table, back);
}

// A rotation's gradient is the rotation back, of any order.
struct RotaryFunction : torch::autograd::Function<RotaryFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& table, bool back) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({table});
    ctx->saved_data["back"] = back;
    return call_rotary(x, table, back);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const bool back = ctx->saved_data["back"].toBool();
    return {call_rotary(grads[0], ctx->get_saved_variables()[0], !back), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rotary(const Tensor& x_BLHE, const Tensor& table_LE) {
  return call_rotary(x_BLHE, table_LE, /*back=*/false);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("rotary(Tensor x, Tensor table, bool back=False) -> Tensor", composed_rotary);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) { m.impl("rotary", rotary_on_cpu); }

TORCH_LIBRARY_IMPL(lra, Autograd, m) { m.impl("rotary", applies<RotaryFunction>(rotary_on_cpu)); }

}  // namespace lra::ops
