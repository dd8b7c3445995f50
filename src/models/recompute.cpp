#include "models/recompute.h"

namespace lra::models {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Recipe : torch::CustomClassHolder {
  std::function<Tensor(const Tensor&)> f;

  // Recorded by autograd, with x as a leaf. Operators may take another path, with other bits, where
  // nothing is recorded, so the forward pass records as well and lets the record go.
  Tensor run(const Tensor& x) const {
    const at::AutoGradMode recording(true);
    return f(x);
  }
};

Tensor as_leaf(const Tensor& x) { return x.detach().requires_grad_(); }

struct RecomputedFunction : torch::autograd::Function<RecomputedFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x,
                        const c10::intrusive_ptr<Recipe>& recipe) {
    ctx->save_for_backward({x});
    ctx->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
    return recipe->run(as_leaf(x)).detach();
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto capsule = ctx->saved_data["recipe"].toCapsule();
    const Tensor x = as_leaf(ctx->get_saved_variables()[0]);
    // A pass inside the pass: it adds to the gradients of the parameters itself.
    torch::autograd::backward({static_cast<const Recipe&>(*capsule).run(x)}, {grads[0]});
    return {x.grad(), Tensor()};
  }
};

}  // namespace

Tensor recomputed(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  if (!at::GradMode::is_enabled() || !x.requires_grad()) return f(x);
  auto recipe = c10::make_intrusive<Recipe>();
  recipe->f = f;
  return RecomputedFunction::apply(x, recipe);
}

}  // namespace lra::models
