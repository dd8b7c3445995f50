// Diagonal recurrences on a device. Forward and the gradient of the input are the kernel's. The
// gradients of a and c go through the kernels k[l] = Re sum_n c_n a_n^l that the recurrence amounts
// to: theirs are correlations, by Fourier transforms of some channels at a time.
#include "ops/diagonal_scan.h"

#include <algorithm>
#include <cmath>

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
namespace cuda = kernels::cuda;

// The kernel's result for x, or the transposed one, in the type of x.
Tensor run(const Tensor& x_in, const Tensor& a_in, const Tensor& c_in, const MaybeTensor& skip_in,
           const MaybeTensor& mask, bool transposed) {
  check_diagonal_scan(x_in, a_in, c_in, skip_in, mask);
  const OnDeviceOf device(x_in, {a_in, c_in, skip_in, mask});
  const Tensor x = x_in.contiguous(), a = a_in.contiguous(), c = c_in.contiguous();
  const Tensor skip = skip_in ? skip_in->contiguous() : Tensor();
  const Tensor lengths = mask ? mask->sum(1, /*keepdim=*/false, at::kInt) : Tensor();
  const Tensor y = at::empty(x.sizes(), x.options().dtype(at::kFloat));
  with_device_type(x, "lra::diagonal_scan", [&](auto zero) {
    using T = decltype(zero);
    cuda::diagonal_scan<T>({.batch = x.size(0),
                            .length = x.size(1),
                            .channels = x.size(2),
                            .modes = a.size(1),
                            .planes = a.size(0),
                            .directions = c.size(0),
                            .x = const_data<T>(x),
                            .lengths = mask ? lengths.const_data_ptr<int32_t>() : nullptr,
                            .a = a.const_data_ptr<float>(),
                            .c = c.const_data_ptr<float>(),
                            .skip = skip_in ? skip.const_data_ptr<float>() : nullptr},
                           transposed, y.mutable_data_ptr<float>(), device.stream());
  });
  return y.to(x.scalar_type());
}

Tensor forward(const Tensor& x, const Tensor& a, const Tensor& c, const MaybeTensor& skip,
               const MaybeTensor& mask) {
  return run(x, a, c, skip, mask, /*transposed=*/false);
}

// sum over b and t of grad[b, t + lag] x[b, t] for each lag, which is number lag modulo 2 L of the
// circle: [D, 2 L], float64.
Tensor correlations(const Tensor& grad_BLD, const Tensor& x_BLD) {
  constexpr int64_t kMostNumbers = int64_t{1} << 25;  // of a spectrum
  const int64_t size = 2 * x_BLD.size(1), channels = x_BLD.size(2);
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

Tensor as_complex(const Tensor& planes) {
  const Tensor wide = planes.to(at::kDouble);
  return at::complex(wide[0], planes.size(0) == 2 ? wide[1] : at::zeros_like(wide[0]));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& x,
                                                    const Tensor& a, const Tensor& c,
                                                    const MaybeTensor& skip,
                                                    const MaybeTensor& mask) {
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const Tensor grad_x = run(grad, a, c, skip, mask, /*transposed=*/true);
  // Not a product: padding may hold anything.
  const auto valid = [&](const Tensor& t) {
    const Tensor wide = t.to(at::kFloat);
    return mask ? wide.masked_fill(mask->eq(0).unsqueeze(2), 0) : wide;
  };
  const Tensor x_BLD = valid(x), grad_BLD = valid(grad);
  const Tensor lags_DL = correlations(grad_BLD, x_BLD);
  const int64_t length = x.size(1), planes = a.size(0);
  const Tensor ahead_DL = lags_DL.narrow(1, 0, length);
  const Tensor behind_DL = lags_DL.narrow(1, length, length).flip(1);  // lags -1, -2, ...
  const Tensor a_ND = as_complex(a), factors = at::arange(1, length, ahead_DL.options());
  std::vector<Tensor> grads_c;
  Tensor grad_a = at::zeros_like(a_ND);
  for (int64_t direction = 0; direction < c.size(0); ++direction) {
    const Tensor& of_kernel = direction == 0 ? ahead_DL : behind_DL;
    grads_c.push_back(planes_of(moments(a_ND, of_kernel), planes));
    // a^l has the slope l a^(l - 1).
    const Tensor slopes = moments(a_ND, of_kernel.narrow(1, 1, length - 1) * factors);
    grad_a = grad_a + as_complex(c[direction]) * slopes;
  }
  return {grad_x, planes_of(grad_a, planes), at::stack(grads_c), (grad_BLD * x_BLD).sum({0, 1})};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("diagonal_scan", forward);
  m.impl("diagonal_scan_backward", backward);
}

}  // namespace lra::ops::device
