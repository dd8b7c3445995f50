#include "ops/pointwise/batch_norm.h"

#include "kernels/pointwise/batch_norm.h"
#include "ops/composed.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using Mask = MaybeTensor;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Four batch_norm_forward_cpu(const Tensor& x_in, const Mask& mask, const Tensor& weight,
                            const Tensor& bias, double eps) {
  check_batch_norm(x_in, mask, weight, bias);
  const Tensor x = x_in.contiguous();
  Tensor y = at::empty_like(x), mean = at::empty_like(weight), variance = at::empty_like(weight);
  int64_t count = 0;
  with_float_type(x, "lra::batch_norm", [&]<typename T>(T) {
    using W = kernels::Wide<T>;
    const int64_t columns = weight.numel();
    count = kernels::batch_norm_forward<T>({x.numel() / columns, columns, eps, const_data<T>(x),
                                            mask_data(mask), const_data<W>(weight),
                                            const_data<W>(bias), mutable_data<T>(y),
                                            mutable_data<W>(mean), mutable_data<W>(variance)});
  });
  return {y, at::scalar_tensor(count, at::kLong), mean, variance};
}

Three batch_norm_backward_cpu(const Tensor& grad_in, const Tensor& x, const Mask& mask,
                              const Tensor& count, const Tensor& mean, const Tensor& variance,
                              const Tensor& weight, double eps, const MaybeTensor& beside) {
  const Tensor grad = grad_in.contiguous();
  LRA_CHECK(x.is_contiguous());
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  Tensor grad_x = at::empty_like(x), grad_weight = at::empty_like(weight),
         grad_bias = at::empty_like(weight);
  with_float_type(x, "lra::batch_norm_backward", [&]<typename T>(T) {
    using W = kernels::Wide<T>;
    const int64_t columns = weight.numel();
    kernels::batch_norm_backward<T>(
        {x.numel() / columns, columns, eps, const_data<T>(grad), const_data<T>(x), mask_data(mask),
         count.item<int64_t>(), const_data<W>(mean), const_data<W>(variance), const_data<W>(weight),
         mutable_data<T>(grad_x), mutable_data<W>(grad_weight), mutable_data<W>(grad_bias)});
  });
  if (beside) grad_x.add_(*beside);  // rounded twice, as by autograd
  return {grad_x, grad_weight, grad_bias};
}

// Positions in rows, in the type that they are summed in.
Tensor rows_of(const Tensor& x) { return x.flatten(0, -2).to(wide_type(x)); }

Tensor keep_valid(const Tensor& rows, const Mask& mask) {
  return mask ? at::where(mask->flatten().unsqueeze(1).to(at::kBool), rows, 0) : rows;
}

Four forward_composed(const Tensor& x, const Mask& mask, const Tensor& weight, const Tensor& bias,
                      double eps) {
  check_batch_norm(x, mask, weight, bias);
  const Tensor rows = rows_of(x);
  const Tensor count =
      mask ? mask->sum() : at::scalar_tensor(rows.size(0), x.options().dtype(at::kLong));
  const Tensor total = count.clamp_min(1);
  const Tensor mean = keep_valid(rows, mask).sum(0) / total;
  const Tensor centred = keep_valid(rows - mean, mask);
  const Tensor variance = centred.square().sum(0) / total;
  const Tensor y = centred * ((variance + eps).rsqrt() * weight) + bias;
  return {keep_valid(y, mask).view(x.sizes()).to(x.scalar_type()), count, mean, variance};
}

Three backward_composed(const Tensor& grad, const Tensor& x, const Mask& mask, const Tensor& count,
                        const Tensor& mean, const Tensor& variance, const Tensor& weight,
                        double eps, const MaybeTensor& beside) {
  const Tensor of_y = keep_valid(rows_of(grad), mask), total = count.clamp_min(1);
  const Tensor rstd = (variance + eps).rsqrt(), xhat = (rows_of(x) - mean) * rstd;
  const Tensor grad_weight = keep_valid(of_y * xhat, mask).sum(0), grad_bias = of_y.sum(0);
  Tensor grad_x = (of_y - (grad_bias + xhat * grad_weight) / total) * (rstd * weight);
  grad_x = keep_valid(grad_x, mask).view(x.sizes());
  if (beside) grad_x.add_(*beside);
  return {grad_x.to(x.scalar_type()), grad_weight, grad_bias};
}

struct BatchNormFunction : torch::autograd::Function<BatchNormFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Mask& mask,
                               const Tensor& weight, const Tensor& bias, double eps) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto [y, count, mean, variance] =
        dispatch<"lra::batch_norm", batch_norm_forward_cpu>(x, mask, weight, bias, eps);
    ctx->save_for_backward({x, tensor_or_empty(mask), weight, bias, count, mean, variance});
    ctx->saved_data["eps"] = eps;
    ctx->mark_non_differentiable({count, mean, variance});
    ctx->set_materialize_grads(false);  // those three would get zeros
    return {y, count, mean, variance, x};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto in = ctx->get_saved_variables();
    const double eps = ctx->saved_data["eps"].toDouble();
    if (at::GradMode::is_enabled()) {
      const auto y = [eps](const auto& t) {
        return variable_list{
            std::get<0>(forward_composed(t[0], optional_tensor(t[1]), t[2], t[3], eps)), t[0]};
      };
      return composed_gradients("lra::batch_norm", y, {in[0], in[1], in[2], in[3]},
                                {grads[0], grads[4]}, 5);
    }
    if (!grads[0].defined()) return {grads[4], Tensor(), Tensor(), Tensor(), Tensor()};
    auto [x, weight, bias] = dispatch<"lra::batch_norm_backward", batch_norm_backward_cpu>(
        grads[0], in[0].contiguous(), optional_tensor(in[1]), in[4], in[5], in[6], in[2], eps,
        optional_tensor(grads[4]));
    return {x, Tensor(), weight, bias, Tensor()};
  }
};

}  // namespace

BatchNormValues batch_norm(const Tensor& x, const Tensor& mask, const Tensor& weight,
                           const Tensor& bias, double eps) {
  const auto all = BatchNormFunction::apply(x, optional_tensor(mask), weight, bias, eps);
  return {all[0], all[1], all[2], all[3], all[4]};
}

void check_batch_norm(const Tensor& x, const Mask& mask, const Tensor& weight, const Tensor& bias) {
  LRA_CHECK(weight.is_contiguous() && weight.numel() > 0 && bias.is_contiguous());
  LRA_CHECK(weight.scalar_type() == wide_type(x) && bias.scalar_type() == wide_type(x));
  LRA_CHECK_EQ(x.size(-1), weight.numel());
  LRA_CHECK_EQ(bias.numel(), weight.numel());
  if (!mask) return;
  LRA_CHECK(mask->scalar_type() == at::kByte && mask->is_contiguous());
  LRA_CHECK_EQ(mask->sizes(), x.sizes().slice(0, static_cast<size_t>(x.dim() - 1)));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "batch_norm(Tensor x, Tensor? mask, Tensor weight, Tensor bias, float eps=1e-5) -> (Tensor, "
      "Tensor, Tensor, Tensor)");
  m.def(
      "batch_norm_backward(Tensor grad, Tensor x, Tensor? mask, Tensor count, Tensor mean, Tensor "
      "variance, Tensor weight, float eps, Tensor? beside=None) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("batch_norm", batch_norm_forward_cpu);
  m.impl("batch_norm_backward", batch_norm_backward_cpu);
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("batch_norm", forward_composed);
  m.impl("batch_norm_backward", backward_composed);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("batch_norm",
         [](const Tensor& x, const Mask& mask, const Tensor& weight, const Tensor& bias,
            double eps) -> Four {
           const auto all = BatchNormFunction::apply(x, mask, weight, bias, eps);
           return {all[0], all[1], all[2], all[3]};
         });
}

}  // namespace lra::ops
