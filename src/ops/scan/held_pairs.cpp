#include "ops/scan/held_pairs.h"

#include "ops/composed.h"

namespace lra::ops {
namespace {

using Two = std::tuple<Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// Uses real numbers, whose products round the same way in vectors and at their ends.
Two composed_hold_pairs(const Tensor& real, const Tensor& frequency, const Tensor& raw_dt,
                        const Tensor& c_KDN2, bool log_rate, bool softplus) {
  check_hold_pairs(real, frequency, raw_dt, c_KDN2);
  const Tensor learned = raw_dt.to(at::kDouble), re = real.to(at::kDouble).t();
  const Tensor dt = softplus ? learned.exp().log1p() : learned.exp();
  const Tensor rate = log_rate ? re.exp() : -re, turn = frequency.to(at::kDouble).t();
  const Tensor size = (-rate * dt).exp(), angle = turn * dt;
  const Tensor a_re = size * angle.cos(), a_im = size * angle.sin();
  // b = (a - 1) / lambda = (a - 1) conj(lambda) / |lambda|^2
  const Tensor inverse = 1 / (rate.square() + turn.square());
  const Tensor b_re = ((1 - a_re) * rate + a_im * turn) * inverse,
               b_im = ((1 - a_re) * turn - a_im * rate) * inverse;
  const Tensor c_K2ND = 2 * c_KDN2.to(at::kDouble).permute({0, 3, 2, 1});
  const Tensor c_re = c_K2ND.select(1, 0), c_im = c_K2ND.select(1, 1);
  const Tensor a = at::stack({a_re, a_im}),
               c = at::stack({c_re * b_re - c_im * b_im, c_re * b_im + c_im * b_re}, 1);
  return {a.to(c_KDN2.scalar_type()), c.to(c_KDN2.scalar_type())};
}

auto composed_with(bool log_rate, bool softplus) {
  return [log_rate, softplus](const auto& in) {
    const auto [a, c] = composed_hold_pairs(in[0], in[1], in[2], in[3], log_rate, softplus);
    return variable_list{a, c};
  };
}

Four composed_hold_pairs_backward(const Tensor& grad_a, const Tensor& grad_c, const Tensor& real,
                                  const Tensor& frequency, const Tensor& raw_dt, const Tensor& c,
                                  bool log_rate, bool softplus) {
  const auto of = composed_backward_pass(composed_with(log_rate, softplus),
                                         {real, frequency, raw_dt, c}, {grad_a, grad_c});
  return {of[0], of[1], of[2], of[3]};
}

struct HoldPairsFunction : torch::autograd::Function<HoldPairsFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& real, const Tensor& frequency,
                               const Tensor& raw_dt, const Tensor& c, bool log_rate,
                               bool softplus) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto [a, held] = dispatch<"lra::hold_pairs", composed_hold_pairs>(real, frequency, raw_dt,
                                                                            c, log_rate, softplus);
    ctx->save_for_backward({real, frequency, raw_dt, c});
    ctx->saved_data["log_rate"] = log_rate;
    ctx->saved_data["softplus"] = softplus;
    return {a, held};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto s = ctx->get_saved_variables();
    const bool log_rate = ctx->saved_data["log_rate"].toBool(),
               softplus = ctx->saved_data["softplus"].toBool();
    if (at::GradMode::is_enabled()) {
      return composed_gradients("lra::hold_pairs", composed_with(log_rate, softplus), s, grads, 6);
    }
    const auto [of_rate, of_frequency, of_dt, of_c] =
        dispatch<"lra::hold_pairs_backward", composed_hold_pairs_backward>(
            grads[0], grads[1], s[0], s[1], s[2], s[3], log_rate, softplus);
    return {of_rate, of_frequency, of_dt, of_c, Tensor(), Tensor()};
  }
};

Two hold_pairs_with_gradient(const Tensor& real, const Tensor& frequency, const Tensor& raw_dt,
                             const Tensor& c, bool log_rate, bool softplus) {
  const auto held = HoldPairsFunction::apply(real, frequency, raw_dt, c, log_rate, softplus);
  return {held[0], held[1]};
}

}  // namespace

void check_hold_pairs(const Tensor& real, const Tensor& frequency, const Tensor& raw_dt,
                      const Tensor& c) {
  LRA_CHECK(c.dim() == 4 && c.size(3) == 2 && real.dim() == 2);
  LRA_CHECK(raw_dt.dim() == 1);
  LRA_CHECK_EQ(raw_dt.size(0), c.size(1));
  LRA_CHECK_EQ(real.sizes(), frequency.sizes());
  LRA_CHECK_EQ(real.size(1), c.size(2));
  LRA_CHECK(real.size(0) == 1 || real.size(0) == c.size(1));
}

HeldPairs hold_pairs(const Poles& poles, const Tensor& c_KDN2) {
  const auto [a, c] = dispatch<"lra::hold_pairs", composed_hold_pairs>(
      poles.real, poles.frequency, poles.raw_dt_D, c_KDN2, poles.log_rate, poles.softplus);
  return {a, c};
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "hold_pairs(Tensor real, Tensor frequency, Tensor raw_dt, Tensor c, bool log_rate=False, "
      "bool softplus=False) -> (Tensor, Tensor)",
      composed_hold_pairs);
  m.def(
      "hold_pairs_backward(Tensor grad_a, Tensor grad_c, Tensor real, Tensor frequency, Tensor "
      "raw_dt, Tensor c, bool log_rate, bool softplus) -> (Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("hold_pairs_backward", composed_hold_pairs_backward);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) { m.impl("hold_pairs", hold_pairs_with_gradient); }

}  // namespace lra::ops
