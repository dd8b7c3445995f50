// Zero-order hold of pairs of poles on a device.
#include "ops/scan/held_pairs.h"

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

// The arguments of the operator, contiguous, on the device that is current while it lives.
struct Arguments {
  Arguments(const Tensor& real_in, const Tensor& frequency_in, const Tensor& raw_dt_in,
            const Tensor& c_in, bool log_rate, bool softplus)
      : device(c_in, {real_in, frequency_in, raw_dt_in}),
        real(real_in.contiguous()),
        frequency(frequency_in.contiguous()),
        raw_dt(raw_dt_in.contiguous()),
        c(c_in.contiguous()),
        log_rate(log_rate),
        softplus(softplus) {
    check_hold_pairs(real, frequency, raw_dt, c);
  }
  bool shared() const { return real.size(0) == 1 && c.size(1) > 1; }
  kernels::HeldPairs problem() const {
    return {.directions = c.size(0),
            .channels = c.size(1),
            .pairs = c.size(2),
            .shared = shared(),
            .log_rate = log_rate,
            .softplus = softplus,
            .real = real.const_data_ptr<float>(),
            .frequency = frequency.const_data_ptr<float>(),
            .raw_dt = raw_dt.const_data_ptr<float>(),
            .c = c.const_data_ptr<float>()};
  }

  const OnDeviceOf device;
  const Tensor real, frequency, raw_dt, c;
  const bool log_rate, softplus;
};

std::tuple<Tensor, Tensor> forward(const Tensor& real, const Tensor& frequency,
                                   const Tensor& raw_dt, const Tensor& c, bool log_rate,
                                   bool softplus) {
  const Arguments in(real, frequency, raw_dt, c, log_rate, softplus);
  const auto problem = in.problem();
  Tensor a = at::empty({2, problem.pairs, problem.channels}, c.options());
  Tensor held = at::empty({problem.directions, 2, problem.pairs, problem.channels}, c.options());
  cuda::held_pairs(problem, a.mutable_data_ptr<float>(), held.mutable_data_ptr<float>(),
                   in.device.stream());
  return {a, held};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad_a_in,
                                                    const Tensor& grad_c_in, const Tensor& real,
                                                    const Tensor& frequency, const Tensor& raw_dt,
                                                    const Tensor& c, bool log_rate, bool softplus) {
  const Arguments in(real, frequency, raw_dt, c, log_rate, softplus);
  const Tensor grad_a = grad_a_in.contiguous(), grad_c = grad_c_in.contiguous();
  Tensor shares = at::empty({3, c.size(1), c.size(2)}, c.options()), of_c = at::empty_like(in.c);
  cuda::held_pairs_backward({.problem = in.problem(),
                             .grad_a = grad_a.const_data_ptr<float>(),
                             .grad_c = grad_c.const_data_ptr<float>(),
                             .shares = shares.mutable_data_ptr<float>(),
                             .grad_own_c = of_c.mutable_data_ptr<float>()},
                            in.device.stream());
  Tensor of_poles = shares.narrow(0, 0, 2);
  if (in.shared()) of_poles = of_poles.sum(1, /*keepdim=*/true);
  return {of_poles[0], of_poles[1], shares[2].sum(1), of_c};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("hold_pairs", forward);
  m.impl("hold_pairs_backward", backward);
}

}  // namespace lra::ops::device
