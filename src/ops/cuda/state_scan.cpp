// State recurrences on a device, composed of the library's operators: a convolution of each state
// with its powers a^l, by FFT. Memory is O(B L P).
#include "ops/state_scan.h"

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Tensor planes_as_complex(const Tensor& planes, int64_t axis) {
  return at::complex(planes.select(axis, 0), planes.select(axis, 1));
}

// x[t] = a x[t - 1] + v[t], or backward x[t] = a x[t + 1] + v[t]: v [B, L, P], a [P], complex.
Tensor recurrence(const Tensor& v, const Tensor& a, bool backward) {
  if (backward) return recurrence(v.flip(1), a, false).flip(1);
  const int64_t length = v.size(1);
  const Tensor powers =
      at::pow(a, at::arange(length, a.options().dtype(at::kDouble)).unsqueeze(1)).to(v.dtype());
  const Tensor spectrum = at::fft_fft(v, 2 * length, 1) * at::fft_fft(powers, 2 * length, 0);
  return at::fft_ifft(spectrum, 2 * length, 1).narrow(1, 0, length);
}

// [B, L, P] complex, 0 at padding, which may hold anything.
Tensor without_padding(const Tensor& t, const MaybeTensor& mask) {
  return mask ? t.masked_fill(mask->eq(0).unsqueeze(2), 0) : t;
}

// [B, L, 2, P], any type, to [B, L, P], 0 at padding; and back.
Tensor as_complex_rows(const Tensor& planes, const MaybeTensor& mask) {
  return without_padding(planes_as_complex(planes.to(at::kFloat), 2), mask);
}
Tensor as_planes(const Tensor& x) { return at::view_as_real(x).transpose(2, 3); }

// Powers of poles near 1 need double precision.
Tensor wide_poles(const Tensor& a) { return planes_as_complex(a.to(at::kDouble), 0); }

Tensor states(const Tensor& v, const Tensor& a, bool bidirectional, const MaybeTensor& mask) {
  const OnDeviceOf device(v, {a, mask});
  check_state_scan(v, a, mask);
  std::vector<Tensor> directions;
  for (const bool backward : {false, true}) {
    if (backward && !bidirectional) break;
    // Zeros behind an example's end leave the state 0.
    const Tensor x = recurrence(as_complex_rows(v, mask), wide_poles(a), backward);
    directions.push_back(as_planes(without_padding(x, mask)));
  }
  return at::stack(directions, 2).to(v.scalar_type()).contiguous();
}

std::tuple<Tensor, Tensor> states_backward(const Tensor& grad, const Tensor& x, const Tensor& a,
                                           const MaybeTensor& mask) {
  const OnDeviceOf device(x, {grad, a, mask});
  const int64_t steps = x.size(1) - 1;
  Tensor grad_v, grad_a;
  for (int64_t d = 0; d < x.size(2); ++d) {
    const Tensor r =
        without_padding(recurrence(as_complex_rows(grad.select(2, d), mask), wide_poles(a).conj(),
                                   /*backward=*/d == 0),
                        mask);
    const Tensor state = as_complex_rows(x.select(2, d), mask);
    const Tensor before = d == 0 ? at::constant_pad_nd(state.narrow(1, 0, steps), {0, 0, 1, 0})
                                 : at::constant_pad_nd(state.narrow(1, 1, steps), {0, 0, 0, 1});
    const Tensor of_a = at::view_as_real((r * before.conj()).sum(at::IntArrayRef{0, 1})).t();
    grad_v = d == 0 ? as_planes(r) : grad_v + as_planes(r);
    grad_a = d == 0 ? of_a : grad_a + of_a;
  }
  return {grad_v.to(x.scalar_type()).contiguous(), grad_a.to(a.scalar_type()).contiguous()};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("state_scan", states);
  m.impl("state_scan_backward", states_backward);
}

}  // namespace lra::ops::device
