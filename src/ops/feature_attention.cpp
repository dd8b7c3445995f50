#include "ops/feature_attention.h"

#include "ops/dispatch.h"
#include "ops/product.h"

namespace lra::ops {
namespace {

using at::Tensor;

Tensor feature_attention_impl(const Tensor& phi_q, const Tensor& phi_k_in, const Tensor& v,
                              const std::optional<Tensor>& mask, double eps) {
  Tensor phi_k = phi_k_in;
  if (mask) phi_k = phi_k * mask->unsqueeze(-1).unsqueeze(-1).to(phi_k.scalar_type());
  const Tensor q_BHLR = phi_q.transpose(1, 2);
  const Tensor summary_BHRE = product(phi_k.permute({0, 2, 3, 1}), v.transpose(1, 2));
  const Tensor norm_BHR1 = phi_k.sum(1).unsqueeze(-1);
  const Tensor sum_BHL1 = product(q_BHLR, norm_BHR1) + eps;
  // A query that sees no key gets 0, as in attention.
  const Tensor out_BHLE = product(q_BHLR, summary_BHRE) / sum_BHL1.masked_fill(sum_BHL1 == 0, 1);
  return out_BHLE.transpose(1, 2);
}

}  // namespace

Tensor feature_attention(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v,
                         const Tensor& mask, double eps) {
  static const auto op =
      find_op<Tensor(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&,
                     double)>("lra::feature_attention");
  return op.call(phi_q, phi_k, v, optional_tensor(mask), eps);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "feature_attention(Tensor phi_q, Tensor phi_k, Tensor v, Tensor? mask=None, float eps=0.0) "
      "-> Tensor");
}

// Made of differentiable library calls: one registration serves every device and the gradient.
TORCH_LIBRARY_IMPL(lra, CompositeImplicitAutograd, m) {
  m.impl("feature_attention", feature_attention_impl);
}

}  // namespace lra::ops
