// The selective scan composed of the library's operators, position by position.
#include "ops/composed.h"
#include "ops/precision.h"
#include "ops/scan/selective_scan.h"

namespace lra::ops {

// Padding becomes a step of 0, which changes no state, wherever time begins.
Tensor composed_selective_scan(const Tensor& x_in, const Tensor& dt_in, const Tensor& a,
                               const Tensor& b_in, const Tensor& c_in, const Tensor& dt_bias,
                               const MaybeTensor& bias, const MaybeTensor& skip, bool reversed,
                               const MaybeTensor& mask, const MaybeTensor& frequency) {
  check_selective_scan(x_in, dt_in, a, b_in, c_in, dt_bias, bias, skip, mask, frequency);
  const at::ScalarType type = wide_type(x_in);
  const int64_t groups = b_in.size(2), length = x_in.size(1);
  const auto valid = [&](const Tensor& t) {
    return without_padding(t.to(type).flatten(2), mask).view(t.sizes());
  };
  const auto of_groups = [&](const Tensor& t) { return t.unflatten(-1, {groups, -1}); };
  const Tensor x = valid(x_in), raw = valid(dt_in) + dt_bias;
  const Tensor dt = without_padding(at::logaddexp(raw, at::zeros_like(raw)), mask);
  // Real and then imaginary parts along an axis, if there are both, as complex numbers.
  const auto numbers = [&](const Tensor& t, int64_t axis) {
    if (!frequency) return t;
    const auto parts = t.chunk(2, axis);
    return at::complex(parts[0].contiguous(), parts[1].contiguous());
  };
  const Tensor b = numbers(valid(b_in), 3).unsqueeze(3);  // [B, L, G, 1, N]
  const Tensor c = numbers(valid(c_in), 3).unsqueeze(3);
  const auto of_channels = [&](const Tensor& t) { return of_groups(t).permute({1, 2, 0}); };
  const Tensor rate = of_channels(frequency ? at::complex(a, *frequency) : a);  // [G, D / G, N]
  const Tensor step = of_groups(dt).unsqueeze(4), input = of_groups(dt * x).unsqueeze(4);
  Tensor h = at::zeros({1}, x.options());
  std::vector<Tensor> outputs(static_cast<size_t>(length));
  for (int64_t time = 0; time < length; ++time) {
    const int64_t t = reversed ? length - 1 - time : time;
    Tensor in = b.select(1, t);
    if (bias) in = in + of_channels(numbers(*bias, 0));
    h = (step.select(1, t) * rate).exp() * h + in * input.select(1, t);
    const Tensor read = (c.select(1, t) * h).sum(-1).flatten(1);
    outputs[static_cast<size_t>(t)] = frequency ? at::real(read) : read;
  }
  Tensor y = length > 0 ? at::stack(outputs, 1) : at::zeros_like(x);
  if (skip) y = y + x * *skip;
  return without_padding(y, mask).to(x_in.scalar_type()).contiguous();
}

}  // namespace lra::ops
