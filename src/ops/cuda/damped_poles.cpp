// Poles of a damped moving average on a device.
#include "ops/scan/damped_poles.h"

#include "ops/composed.h"
#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// The arguments of the operator, contiguous, on the device that is current while it lives.
struct Arguments {
  Arguments(const Tensor& delta, const Tensor& alpha, const Tensor& beta, const Tensor& eta,
            const Tensor& omega)
      : device(delta, {alpha, beta, eta, omega}) {
    LRA_CHECK(delta.dim() == 3 && (delta.size(0) == 1 || delta.size(0) == 2));
    LRA_CHECK_EQ(omega.numel(), delta.size(2));
    for (const Tensor* t : {&delta, &alpha, &beta, &eta}) {
      LRA_CHECK_EQ(t->sizes(), delta.sizes());
      all.push_back(t->contiguous());
    }
    all.push_back(omega.contiguous());
  }
  cuda::DampedPoles problem() const {
    const auto data = [&](size_t n) { return all[n].const_data_ptr<float>(); };
    return {all[0].size(0), all[0].size(1), all[0].size(2), data(0),
            data(1),        data(2),        data(3),        data(4)};
  }

  const OnDeviceOf device;
  variable_list all;
};

Three forward(const Tensor& delta, const Tensor& alpha, const Tensor& beta, const Tensor& eta,
              const Tensor& omega) {
  const Arguments in(delta, alpha, beta, eta, omega);
  const auto of = in.problem();
  const int64_t states = of.directions * of.states;
  const auto options = delta.options();
  const Tensor a = at::empty({1, states, of.channels}, options),
               c = at::empty({of.directions, 1, states, of.channels}, options),
               skip = at::empty({of.channels}, options);
  cuda::damped_poles(of, a.mutable_data_ptr<float>(), c.mutable_data_ptr<float>(),
                     skip.mutable_data_ptr<float>(), in.device.stream());
  return {a, c, skip};
}

Five backward(const Tensor& grad_a_in, const Tensor& grad_c_in, const Tensor& grad_skip_in,
              const Tensor& delta, const Tensor& alpha, const Tensor& beta, const Tensor& eta,
              const Tensor& omega) {
  const Arguments in(delta, alpha, beta, eta, omega);
  const Tensor grad_a = grad_a_in.contiguous(), grad_c = grad_c_in.contiguous(),
               grad_skip = grad_skip_in.contiguous();
  variable_list of;
  for (size_t n = 0; n < 4; ++n) of.push_back(at::empty_like(in.all[n]));
  cuda::damped_poles_backward({in.problem(), grad_a.const_data_ptr<float>(),
                               grad_c.const_data_ptr<float>(), grad_skip.const_data_ptr<float>(),
                               of[0].mutable_data_ptr<float>(), of[1].mutable_data_ptr<float>(),
                               of[2].mutable_data_ptr<float>(), of[3].mutable_data_ptr<float>()},
                              in.device.stream());
  return {of[0], of[1], of[2], of[3], grad_skip};
}

struct DampedPolesFunction : torch::autograd::Function<DampedPolesFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& delta, const Tensor& alpha,
                               const Tensor& beta, const Tensor& eta, const Tensor& omega) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({delta, alpha, beta, eta, omega});
    const auto [a, c, skip] =
        dispatch<"lra::damped_poles", composed_damped_poles>(delta, alpha, beta, eta, omega);
    return {a, c, skip};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto s = ctx->get_saved_variables();
    if (at::GradMode::is_enabled()) {
      const auto poles = [](const auto& in) {
        const auto [a, c, skip] = composed_damped_poles(in[0], in[1], in[2], in[3], in[4]);
        return variable_list{a, c, skip};
      };
      return composed_gradients("lra::damped_poles", poles, s, grads, 5);
    }
    const auto [delta, alpha, beta, eta, omega] =
        dispatch<"lra::damped_poles_backward", device::backward>(grads[0], grads[1], grads[2], s[0],
                                                                 s[1], s[2], s[3], s[4]);
    return {delta, alpha, beta, eta, omega};
  }
};

Three with_gradient(const Tensor& delta, const Tensor& alpha, const Tensor& beta, const Tensor& eta,
                    const Tensor& omega) {
  const auto all = DampedPolesFunction::apply(delta, alpha, beta, eta, omega);
  return {all[0], all[1], all[2]};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("damped_poles", forward);
  m.impl("damped_poles_backward", backward);
}

TORCH_LIBRARY_IMPL(lra, C10_CONCATENATE(Autograd, LRA_DEVICE_KEY), m) {
  m.impl("damped_poles", with_gradient);
}

}  // namespace lra::ops::device
