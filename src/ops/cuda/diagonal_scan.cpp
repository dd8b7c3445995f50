// Diagonal recurrences on a device. With few modes forward and the gradient of the input are the
// kernel's; with many, thousands of positions one after another take longer than the convolution
// with k[l] = Re sum_n c_n a_n^l that the recurrence amounts to. The gradients of a and c always go
// through these kernels: theirs are correlations.
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

// On an H100 the recurrences of 32 modes took 55 % of a training step, the transforms that computed
// the correlations beside them 2 %.
constexpr int64_t kMostModesOfRecurrence = 8;

bool is_recurrence(const Tensor& a) { return a.size(1) <= kMostModesOfRecurrence; }

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

// Transforms of sequences of some channels at a time, on a circle that holds every lag of either
// direction. Planning a transform takes milliseconds, and batches have many lengths: their circles
// have few sizes.
struct Circle {
  explicit Circle(const Tensor& x_BLD)
      : length(x_BLD.size(1)), size(kernels::fourier_size(2 * length)), channels(x_BLD.size(2)) {
    constexpr int64_t kMostNumbers = int64_t{1} << 25;  // of a spectrum
    chunk = std::clamp<int64_t>(kMostNumbers / (x_BLD.size(0) * size), 1, channels);
  }

  // Calls use(first, count) for chunks of channels.
  template <typename F>
  void for_each_chunk(F use) const {
    for (int64_t first = 0; first < channels; first += chunk) {
      use(first, std::min(chunk, channels - first));
    }
  }
  // float32 [..., at most size] -> complex64 [..., size / 2 + 1], and back.
  Tensor spectrum(const Tensor& t) const { return at::fft_rfft(t, size); }
  Tensor sequence(const Tensor& spectrum) const { return at::fft_irfft(spectrum, size); }
  // Channels `first` to `first + count` of [B, L, D]: complex64 [B, count, size / 2 + 1].
  Tensor spectrum_of(const Tensor& t_BLD, int64_t first, int64_t count) const {
    return spectrum(t_BLD.narrow(2, first, count).transpose(1, 2));
  }
  Tensor positions(const Tensor& spectrum) const {  // -> [B, L, count]
    return sequence(spectrum).narrow(2, 0, length).transpose(1, 2);
  }

  int64_t length, size, channels, chunk;
};

// The kernels of both directions, number lag modulo the size of the circle: complex64
// [D, size / 2 + 1].
Tensor spectra_of_kernels(const Tensor& a, const Tensor& c, const Circle& circle) {
  const Tensor a_ND = wide_complex(a);
  const auto kernel = [&](int64_t direction) {
    return scan_kernel(a_ND, wide_complex(c[direction]), circle.length, at::kFloat);
  };
  const int64_t rest = circle.size - circle.length;
  Tensor all = at::constant_pad_nd(kernel(0), {0, rest});
  if (c.size(0) == 2) all = all + at::constant_pad_nd(kernel(1).flip(1), {rest, 0});
  return circle.spectrum(all);
}

Tensor forward_by_transforms(const Tensor& x_in, const Tensor& a, const Tensor& c,
                             const MaybeTensor& skip, const MaybeTensor& mask) {
  const Tensor x_BLD = without_padding(x_in.to(at::kFloat), mask);
  const Circle circle(x_BLD);
  const Tensor kernels = spectra_of_kernels(a, c, circle);
  const Tensor y_BLD = at::empty_like(x_BLD);
  circle.for_each_chunk([&](int64_t first, int64_t count) {
    const Tensor products =
        circle.spectrum_of(x_BLD, first, count) * kernels.narrow(0, first, count);
    y_BLD.narrow(2, first, count).copy_(circle.positions(products));
  });
  if (skip) y_BLD.add_(x_BLD * *skip);
  return without_padding(y_BLD, mask).to(x_in.scalar_type());
}

Tensor forward(const Tensor& x, const Tensor& a, const Tensor& c, const MaybeTensor& skip,
               const MaybeTensor& mask) {
  if (is_recurrence(a)) return run(x, a, c, skip, mask, /*transposed=*/false);
  const OnDeviceOf device(x, {a, c, skip, mask});
  check_diagonal_scan(x, a, c, skip, mask);
  with_device_type(x, "lra::diagonal_scan", [](auto) {});  // refuses float64
  return forward_by_transforms(x, a, c, skip, mask);
}

// sum over b and t of grad[b, t + lag] x[b, t] for each lag, which is number lag modulo the size of
// the circle: [D, size], float64. Writes the gradient of x, without that of the skip, to grad_x if
// it is defined.
Tensor correlations(const Tensor& grad_BLD, const Tensor& x_BLD, const Circle& circle,
                    const Tensor& kernels, const Tensor& grad_x) {
  std::vector<Tensor> parts;
  circle.for_each_chunk([&](int64_t first, int64_t count) {
    const Tensor of_grad = circle.spectrum_of(grad_BLD, first, count);
    parts.push_back(
        circle.sequence((of_grad * circle.spectrum_of(x_BLD, first, count).conj()).sum(0)));
    if (!grad_x.defined()) return;
    const Tensor products = of_grad * kernels.narrow(0, first, count).conj();
    grad_x.narrow(2, first, count).copy_(circle.positions(products));
  });
  return at::cat(parts).to(at::kDouble);
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
  const OnDeviceOf device(x, {grad, a, c, skip, mask});
  const Tensor x_BLD = without_padding(x.to(at::kFloat), mask);
  const Tensor grad_BLD = without_padding(grad.to(at::kFloat), mask);
  const Circle circle(x_BLD);
  Tensor grad_x, kernels;
  if (!is_recurrence(a)) {
    grad_x = at::empty_like(x_BLD);
    kernels = spectra_of_kernels(a, c, circle);
  }
  const Tensor lags_DL = correlations(grad_BLD, x_BLD, circle, kernels, grad_x);
  if (is_recurrence(a)) {
    grad_x = run(grad, a, c, skip, mask, /*transposed=*/true);
  } else {
    if (skip) grad_x.add_(grad_BLD * *skip);
    grad_x = without_padding(grad_x, mask).to(x.scalar_type());
  }
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
