// ops/cuda/device.h for the simulated device.
#include "ops/cuda/device.h"

#include "stand_in.h"
#include "tested_device.h"

namespace lra::ops::device {

kernels::cuda::Stream current_stream(const at::Tensor&) { return nullptr; }

at::Tensor copy_to_device(const at::Tensor& host, const at::Tensor& like) {
  return host.to(like.device());
}

at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
  return at::mm(a.to(wide_type(a)), b.to(wide_type(b)));
}

namespace {
at::Tensor by_head(const at::Tensor& t) { return t.cpu().transpose(1, 2); }
at::Tensor by_token(const at::Tensor& t, at::Device device) {
  return t.transpose(1, 2).contiguous().to(device);
}
}  // namespace

std::tuple<at::Tensor, at::Tensor> library_attention(const at::Tensor& q, const at::Tensor& k,
                                                     const at::Tensor& v, double scale) {
  const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      by_head(q), by_head(k), by_head(v), /*dropout_p=*/0, /*is_causal=*/false, {}, scale);
  return {by_token(out, q.device()), logsumexp.contiguous().to(q.device())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> library_attention_backward(
    const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& logsumexp, double scale) {
  const auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      by_head(grad), by_head(q), by_head(k), by_head(v), by_head(out), logsumexp.cpu(),
      /*dropout_p=*/0, /*is_causal=*/false, {}, scale);
  return {by_token(grad_q, q.device()), by_token(grad_k, q.device()), by_token(grad_v, q.device())};
}

}  // namespace lra::ops::device

namespace lra {

std::optional<at::Device> tested_device() { return stand_in(); }
bool is_simulated() { return true; }

}  // namespace lra
