#include "ops/pointwise/row_norm.h"

#include "ops/fused_function.h"
#include "ops/pointwise/row_norm_problem.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;
using Two = std::tuple<Tensor, Tensor>;

// The result, and the mean and 1 / deviation of each row, [..., 1], for the backward pass.
Three composed_row_norm_forward(const Tensor& x, const Tensor& weight, double eps, bool centered) {
  check_row_norm(x, weight);
  const Tensor wide = x.contiguous().to(wide_type(x)), means = wide.mean(-1, true);
  const Tensor mean = centered ? means : at::zeros_like(means),
               away = centered ? wide - mean : wide;
  const Tensor rstd = (away.square().mean(-1, true) + eps).rsqrt();
  return {(away * rstd * weight).to(x.scalar_type()), mean, rstd};
}
Tensor composed_row_norm(const Tensor& x, const Tensor& weight, double eps, bool centered) {
  return std::get<0>(composed_row_norm_forward(x, weight, eps, centered));
}

Two composed_row_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                               const Tensor& rstd, const Tensor& weight, bool centered,
                               const MaybeTensor& beside) {
  const Tensor xhat = (x.to(wide_type(x)) - mean) * rstd, wide = grad.to(wide_type(x));
  const Tensor g = wide * weight, along = xhat * (g * xhat).mean(-1, true);
  Tensor of_x = rstd * (centered ? g - g.mean(-1, true) - along : g - along);
  if (beside) of_x.add_(*beside);
  return {of_x.to(x.scalar_type()), at::sum_to(wide * xhat, weight.sizes())};
}

Tensor composed_unit_rows(const Tensor& x) {
  return x * beside((x.square().sum(-1, true, wide_type(x)) + kUnitEps).rsqrt(), x);
}

Three row_norm_forward_on_cpu(const Tensor& x, const Tensor& weight, double eps, bool centered) {
  const RowNormForward norm(x, weight, {}, eps, centered);
  with_float_type(x, "lra::row_norm",
                  [&]<typename T>(T) { kernels::layer_norm_forward<T>(norm.problem<T>()); });
  return {norm.y, norm.mean, norm.rstd};
}

Two row_norm_backward_on_cpu(const Tensor& grad, const Tensor& x, const Tensor& mean,
                             const Tensor& rstd, const Tensor& weight, bool centered,
                             const MaybeTensor& beside) {
  const RowNormGradients norm(grad, x, mean, rstd, weight, centered, /*has_bias=*/false);
  with_float_type(x, "lra::row_norm",
                  [&]<typename T>(T) { kernels::layer_norm_backward<T>(norm.problem<T>()); });
  if (beside) norm.of_x.add_(*beside);  // rounded twice, as by autograd
  return {norm.of_x, norm.of_weight};
}

Tensor row_norm_on_cpu(const Tensor& x, const Tensor& weight, double eps, bool centered) {
  return std::get<0>(row_norm_forward_on_cpu(x, weight, eps, centered));
}

struct RowNormFunction : FusedFunction<RowNormFunction, composed_row_norm> {
  static constexpr const char* kName = "lra::row_norm";
  static constexpr bool kOfStream = true;

  static Three fused(const Tensor& x, const Tensor& weight, double eps, bool centered) {
    return dispatch<"lra::row_norm_forward", row_norm_forward_on_cpu>(x, weight, eps, centered);
  }
  static Two gradients(const Tensor& grad, const variable_list& kept, const Tensor& x,
                       const Tensor& weight, double, bool centered) {
    return dispatch<"lra::row_norm_backward", row_norm_backward_on_cpu>(
        grad, x, kept[0], kept[1], weight, centered, optional_tensor(kept[2]));
  }
};

}  // namespace

void check_row_norm(const Tensor& x, const Tensor& weight) {
  LRA_CHECK((weight.dim() == 1 || weight.dim() == 2) && weight.numel() > 0);
  LRA_CHECK(x.dim() >= weight.dim());
  LRA_CHECK_EQ(x.sizes().slice(x.dim() - weight.dim()), weight.sizes());
  LRA_CHECK(weight.scalar_type() == wide_type(x));
}

Tensor row_norm(const Tensor& x, const Tensor& weight, double eps, bool centered) {
  return dispatch<"lra::row_norm", row_norm_on_cpu>(x, weight, eps, centered);
}

std::pair<Tensor, Tensor> row_norm_of_stream(const Tensor& x, const Tensor& weight, double eps) {
  if (!at::GradMode::is_enabled()) return {row_norm(x, weight, eps), x};
  const auto both = RowNormFunction::apply(x, weight, eps, /*centered=*/false);
  return {both[0], both[1]};
}

Tensor unit_rows(const Tensor& x) { return dispatch<"lra::unit_rows", composed_unit_rows>(x); }

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("unit_rows(Tensor x) -> Tensor", composed_unit_rows);
  m.def("row_norm(Tensor x, Tensor weight, float eps, bool centered=False) -> Tensor",
        composed_row_norm);
  m.def(
      "row_norm_forward(Tensor x, Tensor weight, float eps, bool centered) -> (Tensor, Tensor, "
      "Tensor)");
  m.def(
      "row_norm_backward(Tensor grad, Tensor x, Tensor mean, Tensor rstd, Tensor weight, bool "
      "centered, Tensor? beside=None) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("row_norm_forward", composed_row_norm_forward);
  m.impl("row_norm_backward", composed_row_norm_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("row_norm", row_norm_on_cpu);
  m.impl("row_norm_forward", row_norm_forward_on_cpu);
  m.impl("row_norm_backward", row_norm_backward_on_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("row_norm", [](const Tensor& x, const Tensor& weight, double eps, bool centered) {
    return RowNormFunction::apply(x, weight, eps, centered)[0];
  });
}

}  // namespace lra::ops
