#include "ops/scan/damped_poles.h"

#include <cmath>

#include "ops/dispatch.h"

namespace lra::ops {
namespace {

// In float64: the library's own gives different bits at different numbers of threads.
Tensor wide_sigmoid(const Tensor& x) { return 1 / (1 + (-x.to(at::kDouble)).exp()); }

}  // namespace

std::tuple<Tensor, Tensor, Tensor> composed_damped_poles(const Tensor& delta, const Tensor& alpha,
                                                         const Tensor& beta, const Tensor& eta,
                                                         const Tensor& omega) {
  const Tensor p = wide_sigmoid(delta), q = 1 - p * wide_sigmoid(alpha);
  const Tensor c = p * beta * eta / std::sqrt(static_cast<double>(delta.size(1)));
  Tensor a = q[0], read = c[0].unsqueeze(0), skip = omega.to(at::kDouble);
  if (delta.size(0) == 2) {
    const Tensor none = at::zeros_like(c[0]);
    a = at::cat({q[0], q[1]}, 0);
    read = at::stack({at::cat({c[0], none}, 0), at::cat({none, c[1] * q[1]}, 0)});
    skip = skip + c[1].sum(0);
  }
  const auto type = delta.scalar_type();
  return {a.unsqueeze(0).to(type), read.unsqueeze(1).to(type), skip.to(type)};
}

DampedPoles damped_poles(const DampedAverage& of) {
  const auto [a, c, skip] = dispatch<"lra::damped_poles", composed_damped_poles>(
      of.delta, of.alpha, of.beta, of.eta, of.omega_D);
  return {a, c, skip};
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "damped_poles(Tensor delta, Tensor alpha, Tensor beta, Tensor eta, Tensor omega) -> (Tensor, "
      "Tensor, Tensor)",
      composed_damped_poles);
  m.def(
      "damped_poles_backward(Tensor grad_a, Tensor grad_c, Tensor grad_skip, Tensor delta, Tensor "
      "alpha, Tensor beta, Tensor eta, Tensor omega) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
}

}  // namespace lra::ops
