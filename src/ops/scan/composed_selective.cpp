// The selective scan composed of the library's operators, position by position.
#include "ops/composed.h"
#include "ops/precision.h"
#include "ops/scan/selective_scan.h"

namespace lra::ops {

// Padding becomes a step of 0, which changes no state, wherever time begins.
Tensor composed_selective_scan(const SelectiveScanInput& in) {
  check_selective_scan(in);
  const Tensor &a = in.a_ND, &bias = in.bias_ND, &frequency = in.frequency_ND;
  const MaybeTensor mask = optional_tensor(in.mask_BL);
  const bool is_complex = frequency.defined();
  const at::ScalarType type = wide_type(in.x_BLD);
  const int64_t groups = in.b_BLGN.size(2), length = in.x_BLD.size(1);
  const auto valid = [&](const Tensor& t) {
    return without_padding(t.to(type).flatten(2), mask).view(t.sizes());
  };
  const auto of_groups = [&](const Tensor& t) { return t.unflatten(-1, {groups, -1}); };
  const Tensor x = valid(in.x_BLD), raw = valid(in.dt_BLD) + in.dt_bias_D;
  const Tensor dt = without_padding(at::logaddexp(raw, at::zeros_like(raw)), mask);
  // Real and then imaginary parts along an axis, if there are both, as complex numbers.
  const auto numbers = [&](const Tensor& t, int64_t axis) {
    if (!is_complex) return t;
    const auto parts = t.chunk(2, axis);
    return at::complex(parts[0].contiguous(), parts[1].contiguous());
  };
  const Tensor b = numbers(valid(in.b_BLGN), 3).unsqueeze(3);  // [B, L, G, 1, N]
  const Tensor c = numbers(valid(in.c_BLGN), 3).unsqueeze(3);
  const auto of_channels = [&](const Tensor& t) { return of_groups(t).permute({1, 2, 0}); };
  const Tensor rate = of_channels(is_complex ? at::complex(a, frequency) : a);  // [G, D / G, N]
  const Tensor step = of_groups(dt).unsqueeze(4), input = of_groups(dt * x).unsqueeze(4);
  Tensor h = at::zeros({1}, x.options());
  std::vector<Tensor> outputs(static_cast<size_t>(length));
  for (int64_t time = 0; time < length; ++time) {
    const int64_t t = in.reversed ? length - 1 - time : time;
    Tensor entering = b.select(1, t);
    if (bias.defined()) entering = entering + of_channels(numbers(bias, 0));
    h = (step.select(1, t) * rate).exp() * h + entering * input.select(1, t);
    const Tensor read = (c.select(1, t) * h).sum(-1).flatten(1);
    outputs[static_cast<size_t>(t)] = is_complex ? at::real(read) : read;
  }
  Tensor y = length > 0 ? at::stack(outputs, 1) : at::zeros_like(x);
  if (in.skip_D.defined()) y = y + x * in.skip_D;
  return without_padding(y, mask).to(in.x_BLD.scalar_type()).contiguous();
}

}  // namespace lra::ops
