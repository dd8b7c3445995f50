// Diagonal recurrences on a device, composed of the library's operators: convolutions by FFT with
// kernels from two small tables of powers, a^(i m + j) = (a^m)^i a^j (memory O(D N sqrt(L)) and
// O(B L D)).
#include "ops/diagonal_scan.h"

#include <cmath>

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

// [planes, ...] as complex numbers in double precision: powers of poles near 1 need it.
Tensor as_complex(const Tensor& planes) {
  const Tensor wide = planes.to(at::kDouble);
  return at::complex(wide[0], planes.size(0) == 2 ? wide[1] : at::zeros_like(wide[0]));
}

// Re sum_n c_n a_n^l for l < length: a, c [N, D] -> [D, length], float32.
Tensor convolution_kernel(const Tensor& a, const Tensor& c, int64_t length) {
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(length))));
  const int64_t rows = (length + columns - 1) / columns;
  const auto powers = [&](int64_t count, int64_t stride) {  // [D, N, count]
    const Tensor exponents = at::arange(count, a.options().dtype(at::kDouble)) * stride;
    return at::pow(a.t().unsqueeze(-1), exponents);
  };
  const Tensor left = powers(rows, columns) * c.t().unsqueeze(-1), right = powers(columns, 1);
  const auto parts = [](const Tensor& t) {
    return std::pair{at::real(t).to(at::kFloat), at::imag(t).to(at::kFloat)};
  };
  const auto [left_re, left_im] = parts(left);
  const auto [right_re, right_im] = parts(right);
  const Tensor kernel = at::bmm(at::cat({left_re, -left_im}, 1).transpose(1, 2),
                                at::cat({right_re, right_im}, 1));  // [D, rows, columns]
  return kernel.flatten(1).narrow(1, 0, length);
}

Tensor scan(const Tensor& x_in, const Tensor& a_in, const Tensor& c, const MaybeTensor& skip,
            const MaybeTensor& mask) {
  const OnDeviceOf device(x_in, {a_in, c, skip, mask});
  check_diagonal_scan(x_in, a_in, c, skip, mask);
  const int64_t length = x_in.size(1);
  Tensor x = x_in.to(at::kFloat);
  // Not a product: padding may hold anything.
  const Tensor padding = mask ? mask->eq(0).unsqueeze(2) : Tensor();
  if (mask) x = x.masked_fill(padding, 0);
  const Tensor a = as_complex(a_in);
  Tensor kernel = at::constant_pad_nd(convolution_kernel(a, as_complex(c[0]), length), {0, length});
  if (c.size(0) == 2) {  // position l - 1 - j behind: place 2 length - 1 - j of the circle
    const Tensor behind = convolution_kernel(a, as_complex(c[1]), length).flip(1);
    kernel = kernel + at::constant_pad_nd(behind, {length, 0});
  }
  const Tensor spectrum =
      at::fft_rfft(x, 2 * length, 1) * at::fft_rfft(kernel, 2 * length, 1).t().unsqueeze(0);
  Tensor y = at::fft_irfft(spectrum, 2 * length, 1).narrow(1, 0, length);
  if (skip) y = y + x * *skip;
  if (mask) y = y.masked_fill(padding, 0);
  return y.to(x_in.scalar_type()).contiguous();
}

// Computes the forward pass again, with autograd.
std::tuple<Tensor, Tensor, Tensor, Tensor> scan_backward(const Tensor& grad, const Tensor& x,
                                                         const Tensor& a, const Tensor& c,
                                                         const MaybeTensor& skip,
                                                         const MaybeTensor& mask) {
  const at::AutoGradMode with_gradients(true);
  const auto leaf = [](const Tensor& t) { return t.detach().set_requires_grad(true); };
  const std::vector<Tensor> in = {leaf(x), leaf(a), leaf(c),
                                  leaf(skip ? *skip : at::zeros({x.size(2)}, a.options()))};
  // Under the dispatcher's autograd keys again, which are off inside of an operator.
  const c10::impl::IncludeDispatchKeyGuard on(c10::autograd_dispatch_keyset);
  const c10::impl::ForceDispatchKeyGuard keys(
      c10::impl::tls_local_dispatch_key_set().included_,
      c10::impl::tls_local_dispatch_key_set().excluded_ - c10::autograd_dispatch_keyset);
  const auto grads = torch::autograd::grad({scan(in[0], in[1], in[2], in[3], mask)}, in, {grad});
  return {grads[0], grads[1], grads[2], grads[3]};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("diagonal_scan", scan);
  m.impl("diagonal_scan_backward", scan_backward);
}

}  // namespace lra::ops::device
