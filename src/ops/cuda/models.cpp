// Operators of single mechanisms and of the embedding on a device.
#include <algorithm>

#include "ops/cuda/device.h"
#include "ops/product.h"

namespace lra::ops::device {
namespace {

Tensor gumbel_noise_like(const Tensor& logits, int64_t key) {
  const OnDeviceOf device(logits);
  LRA_CHECK(logits.dim() == 4 && logits.size(2) == logits.size(3));
  LRA_CHECK(logits.scalar_type() == at::kFloat);
  Tensor noise = at::empty(logits.sizes(), logits.options());
  kernels::cuda::gumbel_noise(logits.size(0) * logits.size(1), logits.size(2),
                              static_cast<uint64_t>(key), noise.mutable_data_ptr<float>(),
                              device.stream());
  return noise;
}

// A product with ones at the positions of a token: sums are float32, and their order is the
// product's.
Tensor sum_by_token(const Tensor& grad, const Tensor& tokens, int64_t rows) {
  constexpr int64_t kMostOnes = int64_t{1} << 26;  // of a product's left side
  const OnDeviceOf device(grad, {tokens});
  LRA_CHECK(grad.dim() == 2 && tokens.dim() == 1 && rows > 0);
  LRA_CHECK_EQ(grad.size(0), tokens.size(0));
  const Tensor ids = at::arange(rows, tokens.options());
  const int64_t most = std::max<int64_t>(1, kMostOnes / rows);
  Tensor sum = at::zeros({rows, grad.size(1)}, grad.options().dtype(wide_type(grad)));
  for (int64_t first = 0; first < grad.size(0); first += most) {
    const int64_t count = std::min(most, grad.size(0) - first);
    const Tensor ones = tokens.narrow(0, first, count).unsqueeze(1).eq(ids).to(grad.scalar_type());
    sum.add_(sum_of_outer_products(ones, grad.narrow(0, first, count)));
  }
  return sum;
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("gumbel_noise_like", gumbel_noise_like);
  m.impl("sum_by_token", sum_by_token);
}

}  // namespace lra::ops::device
