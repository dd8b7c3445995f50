// Tensors as problems of kernels/pointwise/layer_norm.h, for torch.ops.lra.layer_norm and row_norm
// on any device.
#pragma once

#include "kernels/pointwise/layer_norm.h"
#include "ops/dispatch.h"
#include "ops/pointwise/row_norm.h"

namespace lra::ops {

// The arguments, checked and contiguous, and memory for the result y and for the mean and 1 /
// deviation of each row, [..., 1].
struct RowNormForward {
  RowNormForward(const Tensor& x_in, const Tensor& weight_in, const MaybeTensor& bias_in,
                 double eps, bool centered)
      : eps(eps), centered(centered) {
    check_row_norm(x_in, weight_in);
    if (bias_in) check_row_norm(x_in, *bias_in);
    x = x_in.contiguous();
    weight = weight_in.contiguous();
    if (bias_in) bias = bias_in->contiguous();
    auto of_rows = x.sizes().vec();
    of_rows.back() = 1;
    y = at::empty_like(x);
    mean = at::empty(of_rows, weight.options());
    rstd = at::empty_like(mean);
  }

  template <typename T>
  kernels::LayerNormForward<T> problem() const {
    using W = kernels::Wide<T>;
    const int64_t columns = weight.size(-1);
    return {.rows = x.numel() / columns,
            .columns = columns,
            .eps = eps,
            .x = const_data<T>(x),
            .gamma = const_data<W>(weight),
            .beta = bias.defined() ? const_data<W>(bias) : nullptr,
            .y = mutable_data<T>(y),
            .mean = mutable_data<W>(mean),
            .rstd = mutable_data<W>(rstd),
            .groups = weight.numel() / columns,
            .centered = centered};
  }

  double eps;
  bool centered;
  Tensor x, weight, bias, y, mean, rstd;
};

// The same for the gradients of x, the weight and perhaps the bias.
struct RowNormGradients {
  RowNormGradients(const Tensor& grad_in, const Tensor& x_in, const Tensor& mean_in,
                   const Tensor& rstd_in, const Tensor& weight_in, bool centered, bool has_bias,
                   const MaybeTensor& beside_in = {})
      : centered(centered),
        grad(grad_in.contiguous()),
        x(x_in.contiguous()),
        mean(mean_in.contiguous()),
        rstd(rstd_in.contiguous()),
        weight(weight_in.contiguous()),
        of_x(at::empty_like(x)),
        of_weight(at::empty_like(weight)) {
    check_row_norm(x, weight);
    LRA_CHECK_EQ(grad.sizes(), x.sizes());
    LRA_CHECK(mean.numel() == x.numel() / weight.size(-1) && rstd.numel() == mean.numel());
    if (has_bias) of_bias = at::empty_like(weight);
    if (!beside_in) return;
    LRA_CHECK(beside_in->sizes() == x.sizes() && beside_in->scalar_type() == x.scalar_type());
    beside = beside_in->contiguous();
  }

  template <typename T>
  kernels::LayerNormBackward<T> problem() const {
    using W = kernels::Wide<T>;
    const int64_t columns = weight.size(-1);
    return {.rows = x.numel() / columns,
            .columns = columns,
            .grad = const_data<T>(grad),
            .x = const_data<T>(x),
            .mean = const_data<W>(mean),
            .rstd = const_data<W>(rstd),
            .gamma = const_data<W>(weight),
            .dx = mutable_data<T>(of_x),
            .grad_gamma = mutable_data<W>(of_weight),
            .grad_beta = of_bias.defined() ? mutable_data<W>(of_bias) : nullptr,
            .groups = weight.numel() / columns,
            .centered = centered,
            .beside = beside.defined() ? const_data<T>(beside) : nullptr};
  }

  bool centered;
  Tensor grad, x, mean, rstd, weight, of_x, of_weight, of_bias, beside;
};

}  // namespace lra::ops
