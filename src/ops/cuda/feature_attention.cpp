// Attention by feature maps on a device.
#include "ops/attention/feature_attention_problem.h"
#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

template <typename T>
Tensor scratch_of(const kernels::FeatureAttention<T>& problem, const Tensor& sums) {
  return at::empty({cuda::feature_attention_scratch(problem)}, sums.options());
}

std::tuple<Tensor, Tensor> forward(const Tensor& qkv_in, c10::string_view features,
                                   const MaybeTensor& mask, double offset, double eps) {
  check_feature_attention(qkv_in, mask);
  const OnDeviceOf device(qkv_in, {mask});
  const Tensor qkv = qkv_in.contiguous();
  const Tensor out = at::empty(feature_out_shape(qkv), qkv.options());
  const Tensor sums = at::empty(feature_sums_shape(qkv), qkv.options().dtype(wide_type(qkv)));
  with_device_type(qkv, "lra::packed_feature_attention", [&]<typename T>(T) {
    const auto problem = feature_attention_problem<T>(qkv, features, mask, offset, eps);
    const Tensor scratch = scratch_of(problem, sums);
    cuda::feature_attention_forward<T>(
        {.problem = problem, .out = mutable_data<T>(out), .sums = sums.mutable_data_ptr<float>()},
        scratch.mutable_data_ptr<float>(), device.stream());
  });
  return {out, sums};
}

Tensor backward(const Tensor& grad_in, const Tensor& qkv_in, const Tensor& out, const Tensor& sums,
                c10::string_view features, const MaybeTensor& mask, double offset, double eps) {
  check_feature_attention(qkv_in, mask);
  const OnDeviceOf device(qkv_in, {mask, grad_in, out, sums});
  const Tensor qkv = qkv_in.contiguous(), grad = grad_in.contiguous();
  LRA_CHECK(out.sizes() == feature_out_shape(qkv) && out.is_contiguous());
  LRA_CHECK(sums.sizes() == feature_sums_shape(qkv) && sums.is_contiguous());
  LRA_CHECK_EQ(grad.sizes(), out.sizes());
  Tensor grad_qkv = at::empty_like(qkv);
  with_device_type(qkv, "lra::packed_feature_attention", [&]<typename T>(T) {
    const auto problem = feature_attention_problem<T>(qkv, features, mask, offset, eps);
    const Tensor scratch = scratch_of(problem, sums);
    cuda::feature_attention_backward<T>({.problem = problem,
                                         .out = const_data<T>(out),
                                         .sums = sums.const_data_ptr<float>(),
                                         .grad = const_data<T>(grad),
                                         .grad_qkv = mutable_data<T>(grad_qkv)},
                                        scratch.mutable_data_ptr<float>(), device.stream());
  });
  return grad_qkv;
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("packed_feature_attention",
         [](const Tensor& qkv, c10::string_view features, const MaybeTensor& mask, double offset,
            double eps) { return std::get<0>(forward(qkv, features, mask, offset, eps)); });
  m.impl("packed_feature_attention_forward", forward);
  m.impl("packed_feature_attention_backward", backward);
}

}  // namespace lra::ops::device
