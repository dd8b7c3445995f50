// Parts of layers that are diagonal state spaces: HiPPO's matrix, initial steps, and the state
// space of several inputs and outputs.
#pragma once

#include "layers/initializer.h"
#include "ops/libtorch.h"

namespace lra::mixers {

// The normal part of HiPPO-LegS is -1/2 and this antisymmetric matrix [states, states], float64: it
// is A + P P^T with A_nk = -sqrt((2n + 1)(2k + 1)) below the diagonal, -(n + 1) on it, 0 above, and
// P_n = sqrt(n + 1/2) (Gu et al. 2022, arXiv:2206.11893, section 4.2).
at::Tensor legs_antisymmetric(int64_t states);

// The eigenpairs of its normal part with positive imaginary parts, -1/2 + i frequencies [states /
// 2] with eigenvectors of length one [states, states / 2], whose first element is real and
// positive; the others are their conjugates. float64. HiPPO-LegS itself is not normal, and its
// eigenvectors, though not its eigenvalues, are beyond float64 from some forty states on
// (docs/numerics.md).
struct LegsEigenpairs {
  at::Tensor frequencies, v_re, v_im;
};
LegsEigenpairs legs_eigenpairs(int64_t states);

// Numbers uniform in (0, 1], [count], float64, on the CPU.
at::Tensor uniform_on_cpu(const layers::Initializer& init, int64_t count);

// Throws lra::Error unless the setting `name`, `least`, is at most another one.
void check_order(const char* name, double least, const char* other, double most,
                 const char* expected = "at most it");

// log dt, uniform in [log dt_min, log dt_max]: [count], float32. Throws lra::Error, naming the
// settings mixer.dt_min and mixer.dt_max, if the first is above the second.
at::Tensor log_uniform_steps(const layers::Initializer& init, int64_t count, double dt_min,
                             double dt_max);

// A state space with D inputs and outputs and P complex states; all but the input float32, or
// float64 with float64 inputs. Planes are real and imaginary parts, K is 1 or 2 directions.
struct MimoStateSpace {
  at::Tensor a_2P, b_2PD, c_DK2P, skip_D;
};
// u [B, L, D] -> [B, L, D]: y[t] = Re(sum over directions of C_k x_k[t]) + skip u[t] with x_0[t] =
// a x_0[t - 1] + B u[t] and x_1[t] = a x_1[t + 1] + B u[t], which starts at each example's own end.
// Padded positions may hold anything finite. Memory is linear in L: x is kept for the gradient.
at::Tensor mimo_state_space(const at::Tensor& u_BLD, const MimoStateSpace& system,
                            const at::Tensor& mask_BL);

}  // namespace lra::mixers
