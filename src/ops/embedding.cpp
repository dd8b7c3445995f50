#include "ops/embedding.h"

#include <algorithm>

#include "ops/dispatch.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

// Some rows at a time, so that little of the gradient exists in float32.
Tensor sum_by_token_impl(const Tensor& grad, const Tensor& tokens, int64_t rows) {
  constexpr int64_t kRowsAtOnce = 4096;
  LRA_CHECK(grad.dim() == 2 && tokens.dim() == 1);
  LRA_CHECK_EQ(grad.size(0), tokens.size(0));
  Tensor sum = at::zeros({rows, grad.size(1)}, grad.options().dtype(wide_type(grad)));
  for (int64_t first = 0; first < grad.size(0); first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, grad.size(0) - first);
    sum.add_(at::embedding_dense_backward(grad.narrow(0, first, count).to(sum.scalar_type()),
                                          tokens.narrow(0, first, count), rows, -1, false));
  }
  return sum;
}

struct RoundedRowsFunction : torch::autograd::Function<RoundedRowsFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& table, const Tensor& tokens) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({tokens});
    ctx->saved_data["rows"] = table.size(0);
    return at::embedding(table.to(at::kBFloat16), tokens);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor tokens = ctx->get_saved_variables()[0].flatten();
    return {sum_by_token(grads[0].flatten(0, -2), tokens, ctx->saved_data["rows"].toInt()),
            Tensor()};
  }
};

}  // namespace

Tensor rounded_rows(const Tensor& table, const Tensor& tokens) {
  return RoundedRowsFunction::apply(table, tokens);
}

Tensor sum_by_token(const Tensor& grad, const Tensor& tokens, int64_t rows) {
  return dispatch<"lra::sum_by_token", sum_by_token_impl>(grad, tokens, rows);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("sum_by_token(Tensor grad, Tensor tokens, int rows) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) { m.impl("sum_by_token", sum_by_token_impl); }

}  // namespace lra::ops
