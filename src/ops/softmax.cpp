#include "ops/softmax.h"

#include "ops/precision.h"

namespace lra::ops {
namespace {

struct SoftmaxFunction : torch::autograd::Function<SoftmaxFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Tensor y = x.softmax(-1, wide_type(x));
    ctx->save_for_backward({y});
    ctx->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    return y;
  }
  // Each step here is exact, or a sum along a row.
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Tensor y = ctx->get_saved_variables()[0];
    Tensor grad = grads[0] * y;
    grad.sub_(y * grad.sum(-1, true));
    return {grad.to(static_cast<at::ScalarType>(ctx->saved_data["type"].toInt()))};
  }
};

}  // namespace

Tensor softmax(const Tensor& x) { return SoftmaxFunction::apply(x); }

}  // namespace lra::ops
