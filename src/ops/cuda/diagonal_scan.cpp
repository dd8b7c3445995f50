// Diagonal recurrences on a device. Forward and the gradient of the input are the kernel's. The
// gradients of a and c go through the kernels k[l] = Re sum_n c_n a_n^l that the recurrence amounts
// to: theirs are correlations, by Fourier transforms of some channels at a time.
#include "ops/diagonal_scan.h"

#include <algorithm>
#include <cmath>

#include "kernels/convolution/fourier.h"
#include "ops/composed.h"
#include "ops/cuda/device.h"
#include "ops/diagonal_scan_problem.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
namespace cuda = kernels::cuda;

// The kernel's result for x, or the transposed one, in the type of x.
Tensor run(const Tensor& x_in, const Tensor& a_in, const Tensor& c_in, const MaybeTensor& skip_in,
           const MaybeTensor& mask, bool transposed) {
  const OnDeviceOf device(x_in, {a_in, c_in, skip_in, mask});
  const DiagonalScanArguments in(x_in, a_in, c_in, skip_in, mask);
  const Tensor y = at::empty(x_in.sizes(), x_in.options().dtype(at::kFloat));
  with_device_type(x_in, "lra::diagonal_scan", [&](auto zero) {
    using T = decltype(zero);
    cuda::diagonal_scan<T>(in.problem<T>(), transposed, y.mutable_data_ptr<float>(),
                           device.stream());
  });
  return y.to(x_in.scalar_type());
}

Tensor forward(const Tensor& x, const Tensor& a, const Tensor& c, const MaybeTensor& skip,
               const MaybeTensor& mask) {
  return run(x, a, c, skip, mask, /*transposed=*/false);
}

// sum over b and t of grad[b, t + lag] x[b, t] for each lag, which is number lag modulo the size of
// the circle: [D, size], float64. Planning a transform takes milliseconds, and batches have many
// lengths: their circles have few sizes.
Tensor correlations(const Tensor& grad_BLD, const Tensor& x_BLD) {
  constexpr int64_t kMostNumbers = int64_t{1} << 25;  // of a spectrum
  const int64_t size = kernels::fourier_size(2 * x_BLD.size(1)), channels = x_BLD.size(2);
  const int64_t chunk = std::clamp<int64_t>(kMostNumbers / (x_BLD.size(0) * size), 1, channels);
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < channels; first += chunk) {
    const auto spectrum = [&](const Tensor& t) {
      return at::fft_rfft(t.narrow(2, first, std::min(chunk, channels - first)), size, 1);
    };
    const Tensor products = (spectrum(grad_BLD) * spectrum(x_BLD).conj()).sum(0);
    parts.push_back(at::fft_irfft(products, size, 0));
  }
  return at::cat(parts, 1).t().to(at::kDouble);
}

// sum over l of w[d, l] a[n, d]^l: complex a [N, D], w [D, L] -> [N, D]. By two tables of powers:
// l = i columns + j.
Tensor moments(const Tensor& a_ND, const Tensor& w_DL) {
  const int64_t length = w_DL.size(1);
  const auto columns =
      std::max<int64_t>(1, std::lround(std::ceil(std::sqrt(static_cast<double>(length)))));
  const int64_t rows = (length + columns - 1) / columns;
  const auto powers = [&](int64_t count, int64_t stride) {  // [D, count, N]
    const Tensor exponents = at::arange(count, w_DL.options()) * stride;
    return at::pow(a_ND.t().unsqueeze(1), exponents.unsqueeze(1));
  };
  const Tensor w_DRC =
      at::constant_pad_nd(w_DL, {0, rows * columns - length}).view({w_DL.size(0), rows, columns});
  const Tensor in_rows = at::bmm(w_DRC.to(a_ND.scalar_type()), powers(columns, 1));
  return (in_rows * powers(rows, columns)).sum(1).t();
}

// Gradient of the real and the imaginary part of a complex number, or of the real part alone:
// [planes, N, D], float32.
Tensor planes_of(const Tensor& gradient_ND, int64_t planes) {
  const Tensor both = at::stack({at::real(gradient_ND), -at::imag(gradient_ND)});
  return both.narrow(0, 0, planes).to(at::kFloat).contiguous();
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& x,
                                                    const Tensor& a, const Tensor& c,
                                                    const MaybeTensor& skip,
                                                    const MaybeTensor& mask) {
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const Tensor grad_x = run(grad, a, c, skip, mask, /*transposed=*/true);
  const Tensor x_BLD = without_padding(x.to(at::kFloat), mask);
  const Tensor grad_BLD = without_padding(grad.to(at::kFloat), mask);
  const Tensor lags_DL = correlations(grad_BLD, x_BLD);
  const int64_t length = x.size(1), planes = a.size(0);
  const Tensor ahead_DL = lags_DL.narrow(1, 0, length);
  const Tensor behind_DL =
      lags_DL.narrow(1, lags_DL.size(1) - length, length).flip(1);  // lags -1, -2, ...
  const Tensor a_ND = wide_complex(a), factors = at::arange(1, length, ahead_DL.options());
  std::vector<Tensor> grads_c;
  Tensor grad_a = at::zeros_like(a_ND);
  for (int64_t direction = 0; direction < c.size(0); ++direction) {
    const Tensor& of_kernel = direction == 0 ? ahead_DL : behind_DL;
    grads_c.push_back(planes_of(moments(a_ND, of_kernel), planes));
    // a^l has the slope l a^(l - 1).
    const Tensor slopes = moments(a_ND, of_kernel.narrow(1, 1, length - 1) * factors);
    grad_a = grad_a + wide_complex(c[direction]) * slopes;
  }
  return {grad_x, planes_of(grad_a, planes), at::stack(grads_c),
          (grad_BLD * x_BLD).sum(at::IntArrayRef({0, 1}))};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("diagonal_scan", forward);
  m.impl("diagonal_scan_backward", backward);
}

}  // namespace lra::ops::device
