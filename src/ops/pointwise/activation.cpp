#include "ops/pointwise/activation.h"

#include "kernels/pointwise/activation.h"
#include "ops/fused_function.h"

namespace lra::ops {
namespace {

using kernels::Activation;

// Where torch's softplus becomes x: exp(-40) is below the last place of float64.
constexpr double kSoftplusEnd = 40;

Activation checked(int64_t f) {
  LRA_CHECK(f >= 0 && f <= static_cast<int64_t>(Activation::kFreshShare));
  return static_cast<Activation>(f);
}

Tensor composed_activation(const Tensor& x_in, int64_t f) {
  const Tensor x = x_in.contiguous();  // as the kernel's results
  switch (checked(f)) {
    case Activation::kSigmoid:
      return x.sigmoid();
    case Activation::kClosed:
      return (-x).sigmoid();
    case Activation::kSoftplus:
      return at::softplus(x, 1, kSoftplusEnd);
    case Activation::kExp:
      return x.exp();
    case Activation::kFreshShare: {
      const Tensor fresh = -(2 * x).expm1();
      // Not clamp_min: its slope at the bound differs between versions of the library.
      const Tensor is_least = fresh.le(kernels::kLeastFreshShare);
      return fresh.masked_fill(is_least, kernels::kLeastFreshShare).sqrt();
    }
    case Activation::kPositive:
      break;
  }
  return at::where(x.ge(0), x + 0.5, x.sigmoid());
}

Tensor composed_activation_backward(const Tensor& grad, const Tensor& x, int64_t f) {
  const auto y = [f](const auto& in) { return variable_list{composed_activation(in[0], f)}; };
  return composed_backward_pass(y, {x}, {grad})[0];
}

Tensor activation_on_cpu(const Tensor& x_in, int64_t f) {
  const Tensor x = x_in.contiguous(), y = at::empty_like(x);
  with_float_type(x, "lra::activation", [&]<typename T>(T) {
    kernels::activation_forward<T>(checked(f), x.numel(), const_data<T>(x), mutable_data<T>(y));
  });
  return y;
}

Tensor activation_backward_on_cpu(const Tensor& grad_in, const Tensor& x_in, int64_t f) {
  const Tensor grad = grad_in.contiguous(), x = x_in.contiguous(), grad_x = at::empty_like(x);
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  LRA_CHECK(grad.scalar_type() == x.scalar_type());
  with_float_type(x, "lra::activation", [&]<typename T>(T) {
    kernels::activation_backward<T>(checked(f), x.numel(), const_data<T>(x), const_data<T>(grad),
                                    mutable_data<T>(grad_x));
  });
  return grad_x;
}

Tensor call(const Tensor& x, Activation f) {
  return dispatch<"lra::activation", activation_on_cpu>(x, static_cast<int64_t>(f));
}

struct ActivationFunction
    : FusedOperator<ActivationFunction, "lra::activation", composed_activation,
                    "lra::activation_backward", composed_activation_backward> {};

}  // namespace

Tensor sigmoid(const Tensor& x) { return call(x, Activation::kSigmoid); }
Tensor closed_gate(const Tensor& x) { return call(x, Activation::kClosed); }
Tensor softplus(const Tensor& x) { return call(x, Activation::kSoftplus); }
Tensor positive(const Tensor& x) { return call(x, Activation::kPositive); }
Tensor exp(const Tensor& x) { return call(x, Activation::kExp); }
Tensor fresh_share(const Tensor& x) { return call(x, Activation::kFreshShare); }

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("activation(Tensor x, int f) -> Tensor", composed_activation);
  m.def("activation_backward(Tensor grad, Tensor x, int f) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("activation_backward", composed_activation_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("activation", activation_on_cpu);
  m.impl("activation_backward", activation_backward_on_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("activation", applies<ActivationFunction>(activation_on_cpu));
}

}  // namespace lra::ops
