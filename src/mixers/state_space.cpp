#include "mixers/state_space.h"

#include <cmath>

#include "base/error.h"
#include "ops/linear.h"
#include "ops/one_blas_thread.h"
#include "ops/precision.h"
#include "ops/scan/state_scan.h"

namespace lra::mixers {

using at::Tensor;

Tensor legs_antisymmetric(int64_t states) {
  const Tensor root = (2 * at::arange(states, at::kDouble) + 1).sqrt();
  const Tensor below = (root.unsqueeze(1) * root).tril(-1) / 2;
  return below.t() - below;
}

LegsEigenpairs legs_eigenpairs(int64_t states) {
  const ops::OneBlasThread one_thread;
  const Tensor s = legs_antisymmetric(states);
  // S v = i w v is -i S v = w v.
  const auto [values, vectors] = at::linalg_eigh(at::complex(at::zeros_like(s), -s));
  const int64_t half = states / 2;
  const Tensor v = vectors.narrow(1, half, half), first = v[0];
  const Tensor turned = v * (first.conj() / first.abs());
  return {values.narrow(0, half, half), at::real(turned).contiguous(),
          at::imag(turned).contiguous()};
}

Tensor uniform_on_cpu(const layers::Initializer& init, int64_t count) {
  return 0.5 - init.on_cpu().uniform({count}, 0.5).to(at::kDouble);
}

void check_order(const char* name, double least, const char* other, double most,
                 const char* expected) {
  if (least <= most) return;
  throw Error({.where = name, .what = std::string("is above ") + other, .expected = expected});
}

Tensor log_uniform_steps(const layers::Initializer& init, int64_t count, double dt_min,
                         double dt_max) {
  check_order("mixer.dt_min", dt_min, "mixer.dt_max", dt_max, "0 < dt_min <= dt_max");
  const double low = std::log(dt_min), high = std::log(dt_max);
  return (low + high) / 2 + init.uniform({count}, (high - low) / 2);
}

Tensor mimo_state_space(const Tensor& u_BLD, const MimoStateSpace& system, const Tensor& mask_BL) {
  const Tensor &c = system.c_DK2P, &a = system.a_2P;
  Tensor stream_BLD = u_BLD;
  const Tensor v_BL2P =
      ops::linear_of_stream(stream_BLD, system.b_2PD.flatten(0, 1)).unflatten(2, {2, a.size(1)});
  const Tensor x_BLK2P = ops::state_scan(v_BL2P, a, c.size(1) == 2, mask_BL);
  // Re(c x) = Re c Re x - Im c Im x
  const auto planes = c.unbind(2);
  const Tensor real_c = at::stack({planes[0], -planes[1]}, 2);
  const Tensor y_BLD = ops::linear(x_BLK2P.flatten(2), real_c.flatten(1));
  return y_BLD + stream_BLD * ops::beside(system.skip_D, u_BLD);
}

}  // namespace lra::mixers
