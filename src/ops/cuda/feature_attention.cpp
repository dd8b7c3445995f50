// Attention by feature maps on a device, composed of the library's products; sums in float32.
#include "kernels/feature_attention.h"
#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

struct Problem {
  c10::string_view features;
  double offset, eps;

  Tensor map(const Tensor& x) const {
    return features == "elu" ? at::elu(x) + 1 : at::relu(x) + offset;
  }
  // What a gradient of the features is multiplied with for that of x.
  Tensor slope(const Tensor& x) const {
    const Tensor positive = x.gt(0).to(x.scalar_type());
    return features == "elu" ? at::where(x.gt(0), at::ones_like(x), x.exp()) : positive;
  }
};

Problem problem_of(c10::string_view features, double offset, double eps) {
  LRA_CHECK(features == "elu" || features == "relu");
  return {features, offset, eps};
}

// [B, H, L, E] in float32 of one of the three in [B, L, 3, H, E].
Tensor part(const Tensor& qkv, int64_t which) {
  return qkv.select(2, which).transpose(1, 2).to(wide_type(qkv));
}

// With mask [B, L] as [B, 1, L, 1]: keys and values that take no part are 0, whatever they were.
Tensor masked(const Tensor& x, const MaybeTensor& mask) {
  return mask ? x.masked_fill(mask->eq(0).unsqueeze(1).unsqueeze(-1), 0) : x;
}

// u = (v, 1, 0 ...), [B, H, L, C] with C columns of a sum.
Tensor values_and_one(const Tensor& v, const MaybeTensor& mask) {
  const int64_t width = v.size(-1);
  Tensor u = at::zeros({v.size(0), v.size(1), v.size(2), kernels::feature_sum_columns(width)},
                       v.options());
  u.narrow(-1, 0, width).copy_(masked(v, mask));
  u.select(-1, width).fill_(1);
  return u;
}

Tensor as_rows(const Tensor& x_BHLE, const Tensor& like) {
  return x_BHLE.transpose(1, 2).to(like.scalar_type()).contiguous();
}

// 1 / (x + eps), 0 for a query whose sum over keys is 0.
Tensor inverse(const Tensor& sum, double eps) {
  return at::where(sum.eq(0), at::zeros_like(sum), (sum + eps).reciprocal());
}

std::tuple<Tensor, Tensor> forward(const Tensor& qkv, c10::string_view features,
                                   const MaybeTensor& mask, double offset, double eps) {
  const Problem p = problem_of(features, offset, eps);
  const int64_t width = qkv.size(4);
  const Tensor keys = masked(p.map(part(qkv, 1)), mask);
  const Tensor sums = at::matmul(keys.transpose(-2, -1), values_and_one(part(qkv, 2), mask));
  const Tensor weighted = at::matmul(p.map(part(qkv, 0)), sums);
  const Tensor scale = inverse(weighted.narrow(-1, width, 1), eps);
  return {as_rows(weighted.narrow(-1, 0, width) * scale, qkv), sums};
}

Tensor backward(const Tensor& grad, const Tensor& qkv, const Tensor& out, const Tensor& sums,
                c10::string_view features, const MaybeTensor& mask, double offset, double eps) {
  const Problem p = problem_of(features, offset, eps);
  const int64_t width = qkv.size(4);
  const Tensor q = part(qkv, 0), k = part(qkv, 1), query_features = p.map(q);
  const Tensor scale = inverse(at::matmul(query_features, sums.narrow(-1, width, 1)), eps);
  const auto wide = [&](const Tensor& t) { return t.transpose(1, 2).to(q.scalar_type()); };
  // Of numerator and denominator: o = n / d, so dn = g / d and dd = -(g . o) / d.
  Tensor grad_weighted = at::zeros({q.size(0), q.size(1), q.size(2), sums.size(-1)}, q.options());
  grad_weighted.narrow(-1, 0, width).copy_(wide(grad) * scale);
  grad_weighted.narrow(-1, width, 1).copy_((wide(grad) * wide(out)).sum(-1, true) * scale.neg());
  const Tensor grad_sums = at::matmul(query_features.transpose(-2, -1), grad_weighted);
  const Tensor key_features = masked(p.map(k), mask);
  const Tensor u = values_and_one(part(qkv, 2), mask);
  Tensor grad_qkv = at::empty(qkv.sizes(), qkv.options());
  const auto store = [&](int64_t which, const Tensor& x) {
    grad_qkv.select(2, which).copy_(x.transpose(1, 2));
  };
  store(0, at::matmul(grad_weighted, sums.transpose(-2, -1)) * p.slope(q));
  store(1, masked(at::matmul(u, grad_sums.transpose(-2, -1)) * p.slope(k), mask));
  store(2, masked(at::matmul(key_features, grad_sums.narrow(-1, 0, width)), mask));
  return grad_qkv;
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("packed_feature_attention_forward", forward);
  m.impl("packed_feature_attention_backward", backward);
}

}  // namespace lra::ops::device
