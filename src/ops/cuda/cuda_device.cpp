// ops/cuda/device.h with CUDA.
#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/cuda/device.h"

namespace lra::ops::device {

kernels::cuda::Stream current_stream(const Tensor& t) {
  return c10::cuda::getCurrentCUDAStream(t.device().index()).stream();
}

// Pinned memory comes from LibTorch's cache, which keeps it until the copy is done.
Tensor copy_to_device(const Tensor& host, const Tensor& like) {
  return host.pin_memory().to(like.device(), /*non_blocking=*/true);
}

Tensor wide_product(const Tensor& a, const Tensor& b) {
  return a.scalar_type() == at::kBFloat16 ? at::mm(a, b, at::kFloat) : at::mm(a, b);
}

std::tuple<Tensor, Tensor> library_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                             double scale) {
  const auto results = at::_flash_attention_forward(q, k, v, {}, {}, q.size(1), k.size(1),
                                                    /*dropout_p=*/0, /*is_causal=*/false,
                                                    /*return_debug_mask=*/false, scale);
  return {std::get<0>(results).contiguous(), std::get<1>(results)};
}

namespace {

// The library adds up gradients of queries atomically if operators without a deterministic version
// may warn and continue, although it has a deterministic one: it takes that one while this lives.
class FixedOrder {
 public:
  FixedOrder() { at::globalContext().setDeterministicAlgorithms(asked_, /*warn_only=*/false); }
  ~FixedOrder() { at::globalContext().setDeterministicAlgorithms(asked_, warns_); }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

 private:
  const bool asked_ = at::globalContext().deterministicAlgorithms();
  const bool warns_ = at::globalContext().deterministicAlgorithmsWarnOnly();
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> library_attention_backward(const Tensor& grad, const Tensor& q,
                                                              const Tensor& k, const Tensor& v,
                                                              const Tensor& out,
                                                              const Tensor& logsumexp,
                                                              double scale) {
  // The state of the random numbers is not read without dropout.
  const FixedOrder fixed_order;
  const Tensor no_lengths, no_state = at::empty({2}, q.options().dtype(at::kLong));
  return at::_flash_attention_backward(grad, q, k, v, out, logsumexp, no_lengths, no_lengths,
                                       q.size(1), k.size(1), /*dropout_p=*/0,
                                       /*is_causal=*/false, no_state, no_state, scale);
}

}  // namespace lra::ops::device
