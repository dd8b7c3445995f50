// Dropout, GELU, layer norm and the optimizer on a device.
#include <cmath>

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
namespace cuda = kernels::cuda;

kernels::Dropout dropout_of(double rate, int64_t key, int64_t first_row = 0) {
  return {rate, static_cast<uint64_t>(key), first_row};
}

Tensor dropout(const Tensor& x_in, double rate, int64_t key) {
  const OnDeviceOf device(x_in);
  const Tensor x = x_in.contiguous();
  Tensor y = at::empty_like(x);
  with_device_type(x, "lra::dropout", [&](auto zero) {
    using T = decltype(zero);
    cuda::apply_dropout<T>(x.numel(), const_data<T>(x), mutable_data<T>(y), dropout_of(rate, key),
                           device.stream());
  });
  return y;
}

Tensor dropout_add(const Tensor& x_in, const Tensor& residual_in, double rate, int64_t key) {
  const OnDeviceOf device(x_in, {residual_in});
  const Tensor x = x_in.contiguous(), residual = residual_in.contiguous();
  LRA_CHECK_EQ(x.sizes(), residual.sizes());
  Tensor y = at::empty_like(x);
  with_device_type(x, "lra::dropout_add", [&](auto zero) {
    using T = decltype(zero);
    cuda::dropout_add<T>(x.numel(), const_data<T>(residual), const_data<T>(x), mutable_data<T>(y),
                         dropout_of(rate, key), device.stream());
  });
  return y;
}

Tensor gelu_dropout(const Tensor& x_in, double rate, int64_t key, int64_t first_row) {
  const OnDeviceOf device(x_in);
  const Tensor x = x_in.contiguous();
  Tensor y = at::empty_like(x);
  with_device_type(x, "lra::gelu_dropout", [&](auto zero) {
    using T = decltype(zero);
    cuda::gelu_dropout<T>(x.numel(), const_data<T>(x), mutable_data<T>(y),
                          dropout_of(rate, key, first_row), device.stream());
  });
  return y;
}

std::tuple<Tensor, Tensor> gelu_dropout_backward(const Tensor& x_in, const Tensor& grad_in,
                                                 double rate, int64_t key, int64_t first_row) {
  const OnDeviceOf device(x_in, {grad_in});
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  Tensor y = at::empty_like(x), grad_x = at::empty_like(x);
  with_device_type(x, "lra::gelu_dropout_backward", [&](auto zero) {
    using T = decltype(zero);
    cuda::gelu_dropout_backward<T>(x.numel(), const_data<T>(x), const_data<T>(grad),
                                   mutable_data<T>(grad_x), mutable_data<T>(y),
                                   dropout_of(rate, key, first_row), device.stream());
  });
  return {y, grad_x};
}

using Three = std::tuple<Tensor, Tensor, Tensor>;

Three layer_norm_forward(const Tensor& x_in, const Tensor& weight, const Tensor& bias, double eps) {
  const OnDeviceOf device(x_in, {weight, bias});
  const Tensor x = x_in.contiguous();
  LRA_CHECK(weight.is_contiguous() && bias.is_contiguous());
  LRA_CHECK_EQ(weight.numel(), x.size(-1));
  LRA_CHECK_EQ(bias.numel(), x.size(-1));
  LRA_CHECK(weight.scalar_type() == at::kFloat && bias.scalar_type() == at::kFloat);
  auto shape = x.sizes().vec();
  shape.back() = 1;
  Tensor y = at::empty_like(x), mean = at::empty(shape, x.options().dtype(at::kFloat)),
         rstd = at::empty_like(mean);
  with_device_type(x, "lra::layer_norm", [&](auto zero) {
    using T = decltype(zero);
    cuda::layer_norm_forward<T>(
        {mean.numel(), weight.numel(), eps, const_data<T>(x), weight.const_data_ptr<float>(),
         bias.const_data_ptr<float>(), mutable_data<T>(y), mean.mutable_data_ptr<float>(),
         rstd.mutable_data_ptr<float>()},
        device.stream());
  });
  return {y, mean, rstd};
}

Three layer_norm_backward(const Tensor& grad_in, const Tensor& x, const Tensor& mean,
                          const Tensor& rstd, const Tensor& weight) {
  const OnDeviceOf device(x, {grad_in, mean, rstd, weight});
  const Tensor grad = grad_in.contiguous();
  LRA_CHECK(x.is_contiguous() && weight.is_contiguous());
  LRA_CHECK(mean.is_contiguous() && mean.numel() == x.numel() / weight.numel());
  LRA_CHECK(rstd.is_contiguous() && rstd.numel() == mean.numel());
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const int64_t columns = weight.numel(), rows = x.numel() / columns;
  Tensor grad_x = at::empty_like(x), grad_weight = at::empty_like(weight),
         grad_bias = at::empty_like(weight);
  const Tensor scratch = at::empty({cuda::layer_norm_scratch(rows, columns)}, weight.options());
  with_device_type(x, "lra::layer_norm_backward", [&](auto zero) {
    using T = decltype(zero);
    cuda::layer_norm_backward<T>(
        {rows, columns, const_data<T>(grad), const_data<T>(x), mean.const_data_ptr<float>(),
         rstd.const_data_ptr<float>(), weight.const_data_ptr<float>(), mutable_data<T>(grad_x),
         grad_weight.mutable_data_ptr<float>(), grad_bias.mutable_data_ptr<float>()},
        scratch.mutable_data_ptr<float>(), device.stream());
  });
  return {grad_x, grad_weight, grad_bias};
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return std::get<0>(layer_norm_forward(x, weight, bias, eps));
}

void adam_step(Tensor& parameters, const Tensor& gradients, Tensor& m, Tensor& v,
               at::ArrayRef<double> options, int64_t step, double grad_scale) {
  LRA_CHECK_EQ(options.size(), size_t{5});
  const OnDeviceOf device(parameters, {gradients, m, v});
  for (const Tensor* t : {const_cast<const Tensor*>(&parameters), &gradients,
                          const_cast<const Tensor*>(&m), const_cast<const Tensor*>(&v)}) {
    LRA_CHECK(t->is_contiguous() && t->scalar_type() == at::kFloat);
    LRA_CHECK_EQ(t->numel(), parameters.numel());
  }
  cuda::adam_step(parameters.numel(), parameters.mutable_data_ptr<float>(),
                  gradients.const_data_ptr<float>(), m.mutable_data_ptr<float>(),
                  v.mutable_data_ptr<float>(),
                  {options[0], options[1], options[2], options[3], options[4], step, grad_scale},
                  device.stream());
}

double gradient_norm(const Tensor& gradients) {
  LRA_CHECK(gradients.is_contiguous() && gradients.scalar_type() == at::kFloat);
  const OnDeviceOf device(gradients);
  const auto options = gradients.options().dtype(at::kDouble);
  const Tensor sum = at::empty({}, options);
  const Tensor scratch = at::empty({cuda::sum_of_squares_parts(gradients.numel())}, options);
  cuda::sum_of_squares(gradients.numel(), gradients.const_data_ptr<float>(),
                       scratch.mutable_data_ptr<double>(), sum.mutable_data_ptr<double>(),
                       device.stream());
  return std::sqrt(sum.item<double>());
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("dropout", dropout);
  m.impl("dropout_add", dropout_add);
  m.impl("gelu_dropout", gelu_dropout);
  m.impl("gelu_dropout_backward", gelu_dropout_backward);
  m.impl("layer_norm", layer_norm);
  m.impl("layer_norm_forward", layer_norm_forward);
  m.impl("layer_norm_backward", layer_norm_backward);
  m.impl("adam_step_", adam_step);
  m.impl("gradient_norm", gradient_norm);
}

}  // namespace lra::ops::device
