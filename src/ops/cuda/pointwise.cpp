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

std::tuple<Tensor, Tensor, Tensor> gelu_dropout_backward(const Tensor& x_in, const Tensor& grad_in,
                                                         double rate, int64_t key,
                                                         int64_t first_row, bool again) {
  const OnDeviceOf device(x_in, {grad_in});
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const int64_t count = x.numel(), columns = x.dim() > 1 && count > 0 ? x.size(-1) : 0;
  const auto floats = x.options().dtype(at::kFloat);
  const Tensor grad_x = at::empty_like(x), y = again ? at::empty_like(x) : x.new_empty({0});
  Tensor sums = at::empty({0}, floats);
  with_device_type(x, "lra::gelu_dropout_backward", [&]<typename T>(T) {
    const auto dropout = dropout_of(rate, key, first_row);
    const T *from = const_data<T>(x), *dy = const_data<T>(grad);
    T *dx = mutable_data<T>(grad_x), *to_y = again ? mutable_data<T>(y) : nullptr;
    if (!again || !cuda::takes_gelu_sums(columns, from, dy)) {
      return cuda::gelu_dropout_backward(count, from, dy, dx, to_y, dropout, device.stream());
    }
    const int64_t rows = count / columns;
    const Tensor totals = at::empty({cuda::gelu_sums(rows), columns}, floats);
    cuda::gelu_dropout_backward_and_sums(rows, columns, from, dy, dx, to_y,
                                         totals.mutable_data_ptr<float>(), dropout,
                                         device.stream());
    sums = totals.sum(0);
  });
  return {y, grad_x, sums};
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
