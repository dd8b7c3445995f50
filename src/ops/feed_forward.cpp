#include "ops/feed_forward.h"

#include "ops/dispatch.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                         double, int64_t);

Tensor feed_forward_impl(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                         const Tensor& b2, double rate, int64_t key) {
  if (rate == 0) return linear(linear_gelu(x, w1, b1), w2, b2);
  return linear(gelu_dropout(linear(x, w1, b1), rate, static_cast<uint64_t>(key)), w2, b2);
}

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w1_in,
                        const Tensor& b1, const Tensor& w2_in, const Tensor& b2, double rate,
                        int64_t key) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor w1 = beside(w1_in, x), w2 = beside(w2_in, x);
    Tensor hidden = linear(x, w1, b1);
    ctx->save_for_backward({x, w1, w2, hidden});
    ctx->saved_data["rate"] = rate;
    ctx->saved_data["key"] = key;
    return linear(gelu_dropout(hidden, rate, static_cast<uint64_t>(key)), w2, b2);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    refuse_second_derivative("lra::feed_forward");
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &w1 = saved[1], &w2 = saved[2], &hidden = saved[3];
    const double rate = ctx->saved_data["rate"].toDouble();
    const auto key = static_cast<uint64_t>(ctx->saved_data["key"].toInt());
    const auto second = linear_backward(grads[0], gelu_dropout(hidden, rate, key), w2, true, true);
    const Tensor grad_hidden = gelu_dropout_backward(hidden, second.x, rate, key);
    const auto first = linear_backward(grad_hidden, x, w1, ctx->needs_input_grad(0), true);
    return {first.x, first.weight, first.bias, second.weight, second.bias, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                    const Tensor& b2, double dropout, uint64_t key) {
  static const auto op = find_op<Signature>("lra::feed_forward");
  return op.call(x, w1, b1, w2, b2, dropout, static_cast<int64_t>(key));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "feed_forward(Tensor x, Tensor w1, Tensor b1, Tensor w2, Tensor b2, float dropout=0.0, int "
      "key=0) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) { m.impl("feed_forward", feed_forward_impl); }

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("feed_forward", [](const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                            const Tensor& b2, double rate, int64_t key) {
    // Without gradients (evaluation) the fused path; the function object would keep the hidden
    // values.
    if (!at::GradMode::is_enabled()) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      return feed_forward(x, w1, b1, w2, b2, rate, static_cast<uint64_t>(key));
    }
    return FeedForwardFunction::apply(x, w1, b1, w2, b2, rate, key);
  });
}

}  // namespace lra::ops
