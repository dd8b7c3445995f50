// Code that the operators of a CUDA device share. The files of this folder are compiled with a
// LibTorch that has CUDA, for the dispatch key CUDA; and in tests/simulated_cuda with the same
// kernels on the CPU, for the key PrivateUse1. Everything that differs between the two is declared
// here.
#pragma once

#include <c10/core/DeviceGuard.h>

#include <tuple>
#include <type_traits>

#include "kernels/cuda/kernels.h"
#include "ops/dispatch.h"
#include "ops/precision.h"

#ifndef LRA_DEVICE_KEY
#define LRA_DEVICE_KEY CUDA
#endif

namespace lra::ops::device {

// The stream of PyTorch's current work on the tensor's device.
kernels::cuda::Stream current_stream(const Tensor& t);

// Copies a CPU tensor to the device of `like`, without waiting for queued work.
Tensor copy_to_device(const Tensor& host, const Tensor& like);

// a [M, K] times b [K, N] in the type that sums are held in: float32 for bfloat16.
Tensor wide_product(const Tensor& a, const Tensor& b);

// The library's attention of bfloat16 q [B, L, H, E], k and v [B, S, H, E] in which every query
// sees every key, E a multiple of 8: out [B, L, H, E], logsumexp [B, H, L] in float32; and the
// gradients of q, k and v.
std::tuple<Tensor, Tensor> library_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                             double scale);
std::tuple<Tensor, Tensor, Tensor> library_attention_backward(const Tensor& grad, const Tensor& q,
                                                              const Tensor& k, const Tensor& v,
                                                              const Tensor& out,
                                                              const Tensor& logsumexp,
                                                              double scale);

// Makes the device of a tensor the current one while it lives; kernels run on its stream. The
// `others`, if any, must be there too: a kernel that reads elsewhere ends the process.
class OnDeviceOf {
 public:
  explicit OnDeviceOf(const Tensor& t, std::initializer_list<MaybeTensor> others = {})
      : guard_(t.device()), stream_(current_stream(t)) {
    for (const auto& other : others) {
      LRA_CHECK(!other || !other->defined() || other->device() == t.device());
    }
  }
  kernels::cuda::Stream stream() const { return stream_; }

 private:
  c10::DeviceGuard guard_;
  kernels::cuda::Stream stream_;
};

// Calls f with a value of the element type: float or Bf16. float64 is for checks on the CPU.
template <typename F>
auto with_device_type(const Tensor& t, const char* op, F f) {
  if (t.scalar_type() == at::kBFloat16) return f(kernels::Bf16{});
  if (t.scalar_type() == at::kFloat) return f(float{});
  throw CheckFailure(std::string(op) + ": element type " + toString(t.scalar_type()) +
                     " is not supported on a GPU; use float32 or bfloat16, or the CPU");
}

}  // namespace lra::ops::device
