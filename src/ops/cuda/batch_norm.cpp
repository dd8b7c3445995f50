// Batch normalization on a device.
#include "ops/pointwise/batch_norm.h"

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using Mask = MaybeTensor;
namespace cuda = kernels::cuda;

Tensor scratch_for(const Tensor& x, const Tensor& weight) {
  const int64_t columns = weight.numel();
  return at::empty({cuda::batch_norm_scratch(x.numel() / columns, columns)}, weight.options());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> forward(const Tensor& x_in, const Mask& mask,
                                                   const Tensor& weight, const Tensor& bias,
                                                   double eps) {
  const OnDeviceOf device(x_in, {mask, weight, bias});
  check_batch_norm(x_in, mask, weight, bias);
  const Tensor x = x_in.contiguous(), scratch = scratch_for(x, weight);
  Tensor y = at::empty_like(x), count = at::empty({}, x.options().dtype(at::kLong)),
         mean = at::empty_like(weight), variance = at::empty_like(weight);
  with_device_type(x, "lra::batch_norm", [&]<typename T>(T) {
    cuda::batch_norm_forward<T>(
        {x.numel() / weight.numel(), weight.numel(), eps, const_data<T>(x), mask_data(mask),
         weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), mutable_data<T>(y),
         mean.mutable_data_ptr<float>(), variance.mutable_data_ptr<float>()},
        count.mutable_data_ptr<int64_t>(), scratch.mutable_data_ptr<float>(), device.stream());
  });
  return {y, count, mean, variance};
}

std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad_in, const Tensor& x,
                                            const Mask& mask, const Tensor& count,
                                            const Tensor& mean, const Tensor& variance,
                                            const Tensor& weight, double eps,
                                            const MaybeTensor& beside_in) {
  const OnDeviceOf device(x, {grad_in, mask, count, mean, variance, weight, beside_in});
  const Tensor grad = grad_in.contiguous(), scratch = scratch_for(x, weight);
  const Tensor beside = beside_in ? beside_in->contiguous() : Tensor();
  LRA_CHECK(x.is_contiguous());
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  LRA_CHECK(!beside.defined() || beside.sizes() == x.sizes());
  Tensor grad_x = at::empty_like(x), grad_weight = at::empty_like(weight),
         grad_bias = at::empty_like(weight);
  with_device_type(x, "lra::batch_norm_backward", [&]<typename T>(T) {
    cuda::batch_norm_backward<T>({.rows = x.numel() / weight.numel(),
                                  .columns = weight.numel(),
                                  .eps = eps,
                                  .grad = const_data<T>(grad),
                                  .x = const_data<T>(x),
                                  .valid = mask_data(mask),
                                  .mean = mean.const_data_ptr<float>(),
                                  .variance = variance.const_data_ptr<float>(),
                                  .gamma = weight.const_data_ptr<float>(),
                                  .dx = mutable_data<T>(grad_x),
                                  .grad_gamma = grad_weight.mutable_data_ptr<float>(),
                                  .grad_beta = grad_bias.mutable_data_ptr<float>()},
                                 count.const_data_ptr<int64_t>(),
                                 beside.defined() ? const_data<T>(beside) : nullptr,
                                 scratch.mutable_data_ptr<float>(), device.stream());
  });
  return {grad_x, grad_weight, grad_bias};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("batch_norm", forward);
  m.impl("batch_norm_backward", backward);
}

}  // namespace lra::ops::device
