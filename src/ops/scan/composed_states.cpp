// State recurrences composed of the library's operators: a convolution of each state with its
// powers a^l, by FFT. Memory is O(B L P).
#include "kernels/convolution/fourier.h"
#include "ops/composed.h"
#include "ops/precision.h"
#include "ops/scan/state_scan.h"

namespace lra::ops {
namespace {

// x[t] = a x[t - 1] + v[t], or backward x[t] = a x[t + 1] + v[t]: v [B, L, P], a [P], complex.
Tensor recurrence(const Tensor& v, const Tensor& a, bool backward) {
  if (backward) return recurrence(v.flip(1), a, false).flip(1);
  const int64_t length = v.size(1), size = kernels::fourier_size(2 * length);
  const Tensor lags = at::arange(length, v.options().dtype(at::kDouble));
  const Tensor powers = at::pow(a, lags.unsqueeze(1)).to(v.scalar_type());
  const Tensor spectrum = at::fft_fft(v, size, 1) * at::fft_fft(powers, size, 0);
  return at::fft_ifft(spectrum, size, 1).narrow(1, 0, length);
}

// [B, L, 2, P] to complex numbers [B, L, P], 0 at padding; and back.
Tensor complex_rows(const Tensor& planes, const MaybeTensor& mask) {
  const Tensor wide = planes.to(wide_type(planes));
  return without_padding(at::complex(wide.select(2, 0), wide.select(2, 1)), mask);
}
Tensor plane_rows(const Tensor& x) { return at::view_as_real(x).transpose(2, 3); }

}  // namespace

Tensor composed_state_scan(const Tensor& v, const Tensor& a, bool bidirectional,
                           const MaybeTensor& mask) {
  check_state_scan(v, a, mask);
  std::vector<Tensor> directions;
  for (const bool backward : {false, true}) {
    if (backward && !bidirectional) break;
    // Zeros behind an example's end leave the state 0.
    const Tensor x = recurrence(complex_rows(v, mask), wide_complex(a), backward);
    directions.push_back(plane_rows(without_padding(x, mask)));
  }
  return at::stack(directions, 2).to(v.scalar_type()).contiguous();
}

std::tuple<Tensor, Tensor> composed_state_scan_backward(const Tensor& grad, const Tensor& x,
                                                        const Tensor& a, const MaybeTensor& mask) {
  const int64_t steps = x.size(1) - 1;
  Tensor grad_v, grad_a;
  for (int64_t d = 0; d < x.size(2); ++d) {
    const Tensor g = complex_rows(grad.select(2, d), mask);
    const Tensor r =
        without_padding(recurrence(g, wide_complex(a).conj(), /*backward=*/d == 0), mask);
    const Tensor state = complex_rows(x.select(2, d), mask);
    const Tensor before = d == 0 ? at::constant_pad_nd(state.narrow(1, 0, steps), {0, 0, 1, 0})
                                 : at::constant_pad_nd(state.narrow(1, 1, steps), {0, 0, 0, 1});
    const Tensor of_a = at::view_as_real((r * before.conj()).sum(at::IntArrayRef{0, 1})).t();
    grad_v = d == 0 ? plane_rows(r) : grad_v + plane_rows(r);
    grad_a = d == 0 ? of_a : grad_a + of_a;
  }
  return {grad_v.to(x.scalar_type()).contiguous(), grad_a.to(a.scalar_type()).contiguous()};
}

}  // namespace lra::ops
