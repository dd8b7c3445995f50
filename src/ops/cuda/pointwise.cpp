// Dropout, GELU and the optimizer on a device.
#include "ops/adam.h"
#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

kernels::Dropout dropout_of(double rate, int64_t key, int64_t first_row) {
  return {rate, static_cast<uint64_t>(key), first_row};
}

// y like x from kernel(count, x, y, stream); `others` are on its device.
template <typename Kernel>
Tensor each(const Tensor& x_in, std::initializer_list<MaybeTensor> others, const char* name,
            const Kernel& kernel) {
  const OnDeviceOf device(x_in, others);
  const Tensor x = x_in.contiguous();
  Tensor y = at::empty_like(x);
  with_device_type(x, name, [&]<typename T>(T) {
    kernel(x.numel(), const_data<T>(x), mutable_data<T>(y), device.stream());
  });
  return y;
}

Tensor dropout(const Tensor& x, double rate, int64_t key, int64_t first_row) {
  const auto run = [&]<typename T>(int64_t count, const T* from, T* to, cuda::Stream stream) {
    cuda::apply_dropout<T>(count, from, to, dropout_of(rate, key, first_row), stream);
  };
  return each(x, {}, "lra::dropout", run);
}

Tensor dropout_add(const Tensor& x, const Tensor& residual_in, double rate, int64_t key,
                   int64_t first_row) {
  const Tensor residual = residual_in.contiguous();
  LRA_CHECK_EQ(x.sizes(), residual.sizes());
  const auto run = [&]<typename T>(int64_t count, const T* from, T* to, cuda::Stream stream) {
    cuda::dropout_add<T>(count, const_data<T>(residual), from, to, dropout_of(rate, key, first_row),
                         stream);
  };
  return each(x, {residual}, "lra::dropout_add", run);
}

Tensor gelu_dropout(const Tensor& x, double rate, int64_t key, int64_t first_row) {
  const auto run = [&]<typename T>(int64_t count, const T* from, T* to, cuda::Stream stream) {
    cuda::gelu_dropout<T>(count, from, to, dropout_of(rate, key, first_row), stream);
  };
  return each(x, {}, "lra::gelu_dropout", run);
}

std::tuple<Tensor, Tensor> gelu_dropout_backward(const Tensor& x_in, const Tensor& grad_in,
                                                 double rate, int64_t key, int64_t first_row) {
  const OnDeviceOf device(x_in, {grad_in});
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  Tensor y = at::empty_like(x), grad_x = at::empty_like(x);
  with_device_type(x, "lra::gelu_dropout_backward", [&]<typename T>(T) {
    cuda::gelu_dropout_backward<T>(x.numel(), const_data<T>(x), const_data<T>(grad),
                                   mutable_data<T>(grad_x), mutable_data<T>(y),
                                   dropout_of(rate, key, first_row), device.stream());
  });
  return {y, grad_x};
}

void adam_step(Tensor& parameters, const Tensor& gradients, Tensor& m, Tensor& v,
               at::ArrayRef<double> options, int64_t step, double grad_scale,
               const MaybeTensor& norm, double clip_norm) {
  LRA_CHECK_EQ(options.size(), size_t{5});
  const OnDeviceOf device(parameters, {gradients, m, v, norm});
  for (const Tensor* t : {const_cast<const Tensor*>(&parameters), &gradients,
                          const_cast<const Tensor*>(&m), const_cast<const Tensor*>(&v)}) {
    LRA_CHECK(t->is_contiguous() && t->scalar_type() == at::kFloat);
    LRA_CHECK_EQ(t->numel(), parameters.numel());
  }
  cuda::adam_step(parameters.numel(), parameters.mutable_data_ptr<float>(),
                  gradients.const_data_ptr<float>(), m.mutable_data_ptr<float>(),
                  v.mutable_data_ptr<float>(),
                  {options[0], options[1], options[2], options[3], options[4], step, grad_scale},
                  clip_norm > 0 ? check_norm(norm).const_data_ptr<double>() : nullptr, clip_norm,
                  device.stream());
}

Tensor gradient_norm(const Tensor& gradients) {
  LRA_CHECK(gradients.is_contiguous() && gradients.scalar_type() == at::kFloat);
  const OnDeviceOf device(gradients);
  const auto options = gradients.options().dtype(at::kDouble);
  Tensor norm = at::empty({}, options);
  const Tensor scratch = at::empty({cuda::sum_of_squares_parts(gradients.numel())}, options);
  cuda::gradient_norm(gradients.numel(), gradients.const_data_ptr<float>(),
                      scratch.mutable_data_ptr<double>(), norm.mutable_data_ptr<double>(),
                      device.stream());
  return norm;
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("dropout", dropout);
  m.impl("dropout_add", dropout_add);
  m.impl("gelu_dropout", gelu_dropout);
  m.impl("gelu_dropout_backward", gelu_dropout_backward);
  m.impl("adam_step_", adam_step);
  m.impl("gradient_norm", gradient_norm);
}

}  // namespace lra::ops::device
