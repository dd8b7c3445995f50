// ops/cuda/device.h with CUDA.
#include <ATen/cuda/CUDAContext.h>

#include "ops/cuda/device.h"

namespace lra::ops::device {

kernels::cuda::Stream current_stream(const at::Tensor& t) {
  return at::cuda::getCurrentCUDAStream(t.device().index()).stream();
}

at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kBFloat16 ? at::mm(a, b, at::kFloat) : at::mm(a, b);
}

}  // namespace lra::ops::device
