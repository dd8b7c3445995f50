// Operators of single mechanisms and of the embedding on a device.
#include <algorithm>

#include "ops/cuda/device.h"
#include "ops/product.h"
#include "ops/sinkhorn.h"

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

struct SinkhornArguments {
  SinkhornArguments(const Tensor& logits_in, const MaybeTensor& valid_in, int64_t iterations)
      : logits(logits_in.contiguous()),
        valid(valid_in ? valid_in->contiguous() : Tensor()),
        iterations(iterations) {
    check_sinkhorn(logits, valid_in, iterations);
  }
  // Vectors of rows and columns, `count` times.
  Tensor vectors(int64_t count) const {
    return at::empty({count, 2, logits.size(0), logits.size(1), logits.size(2)}, logits.options());
  }
  kernels::cuda::SinkhornMatrices problem(const Tensor& scalings) const {
    return {.planes = logits.size(0) * logits.size(1),
            .heads = logits.size(1),
            .size = logits.size(2),
            .iterations = iterations,
            .logits = logits.const_data_ptr<float>(),
            .valid = valid.defined() ? valid.const_data_ptr<bool>() : nullptr,
            .scalings = scalings.mutable_data_ptr<float>()};
  }

  Tensor logits, valid;
  int64_t iterations;
};

std::tuple<Tensor, Tensor> sinkhorn_forward(const Tensor& logits, const MaybeTensor& valid,
                                            int64_t iterations) {
  const OnDeviceOf device(logits, {valid});
  const SinkhornArguments in(logits, valid, iterations);
  const Tensor matrix = at::empty_like(in.logits), scalings = in.vectors(iterations);
  kernels::cuda::sinkhorn_forward(in.problem(scalings), matrix.mutable_data_ptr<float>(),
                                  device.stream());
  return {matrix, scalings};
}

Tensor sinkhorn_backward(const Tensor& grad_in, const Tensor& logits, const MaybeTensor& valid,
                         const Tensor& scalings) {
  const OnDeviceOf device(logits, {grad_in, valid, scalings});
  const SinkhornArguments in(logits, valid, scalings.size(0));
  const Tensor grad = grad_in.contiguous(), of_logits = at::empty_like(in.logits),
               scratch = in.vectors(1);
  kernels::cuda::sinkhorn_backward(in.problem(scalings), grad.const_data_ptr<float>(),
                                   scratch.mutable_data_ptr<float>(),
                                   of_logits.mutable_data_ptr<float>(), device.stream());
  return of_logits;
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
  m.impl("sinkhorn_forward", sinkhorn_forward);
  m.impl("sinkhorn_backward", sinkhorn_backward);
  m.impl("sum_by_token", sum_by_token);
}

}  // namespace lra::ops::device
