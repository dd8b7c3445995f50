// ops/cuda/device.h with CUDA.
#include <c10/cuda/CUDAStream.h>

#include "ops/cuda/device.h"

namespace lra::ops::device {

kernels::cuda::Stream current_stream(const at::Tensor& t) {
  return c10::cuda::getCurrentCUDAStream(t.device().index()).stream();
}

// Pinned memory comes from LibTorch's cache, which keeps it until the copy is done.
at::Tensor copy_to_device(const at::Tensor& host, const at::Tensor& like) {
  return host.pin_memory().to(like.device(), /*non_blocking=*/true);
}

at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kBFloat16 ? at::mm(a, b, at::kFloat) : at::mm(a, b);
}

}  // namespace lra::ops::device
