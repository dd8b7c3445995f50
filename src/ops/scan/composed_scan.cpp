// Diagonal recurrences composed of the library's operators: convolutions by FFT with kernels from
// two small tables of powers (memory O(D N sqrt(L)) and O(B L D)).
#include "ops/scan/diagonal_scan.h"

#include <cmath>

#include "kernels/convolution/fourier.h"
#include "ops/composed.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

// Re sum_n c_n a_n^l for l < length: complex a, c [N, D] -> [D, length] of this real type, from two
// tables of powers, a^(i m + j) = (a^m)^i a^j.
Tensor scan_kernel(const Tensor& a, const Tensor& c, int64_t length, at::ScalarType type) {
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(length))));
  const int64_t rows = (length + columns - 1) / columns;
  const auto powers = [&](int64_t count, int64_t stride) {  // [D, N, count]
    const Tensor exponents = at::arange(count, a.options().dtype(at::kDouble)) * stride;
    return at::pow(a.t().unsqueeze(-1), exponents);
  };
  const Tensor left = powers(rows, columns) * c.t().unsqueeze(-1), right = powers(columns, 1);
  const auto parts = [type](const Tensor& t) {
    return std::pair{at::real(t).to(type), at::imag(t).to(type)};
  };
  const auto [left_re, left_im] = parts(left);
  const auto [right_re, right_im] = parts(right);
  const Tensor kernel = at::bmm(at::cat({left_re, -left_im}, 1).transpose(1, 2),
                                at::cat({right_re, right_im}, 1));  // [D, rows, columns]
  return kernel.flatten(1).narrow(1, 0, length);
}

}  // namespace

Tensor composed_diagonal_scan(const Tensor& x_in, const Tensor& a_in, const Tensor& c,
                              const MaybeTensor& skip, const MaybeTensor& mask) {
  check_diagonal_scan(x_in, a_in, c, skip, mask);
  const int64_t length = x_in.size(1), size = kernels::fourier_size(2 * length);
  const at::ScalarType type = wide_type(x_in);
  const Tensor x = without_padding(x_in.to(type), mask);
  const Tensor a = wide_complex(a_in);
  Tensor kernel = scan_kernel(a, wide_complex(c[0]), length, type);
  kernel = at::constant_pad_nd(kernel, {0, size - length});
  if (c.size(0) == 2) {  // position l - 1 - j behind: place size - 1 - j of the circle
    const Tensor behind = scan_kernel(a, wide_complex(c[1]), length, type).flip(1);
    kernel = kernel + at::constant_pad_nd(behind, {size - length, 0});
  }
  const Tensor spectrum = at::fft_rfft(x, size, 1) * at::fft_rfft(kernel, size, 1).t().unsqueeze(0);
  Tensor y = at::fft_irfft(spectrum, size, 1).narrow(1, 0, length);
  if (skip) y = y + x * *skip;
  return without_padding(y, mask).to(x_in.scalar_type()).contiguous();
}

}  // namespace lra::ops
