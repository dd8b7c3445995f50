// The poles and coefficients of a damped moving average on a CUDA device (ops/scan/damped_poles.h),
// in double as on the CPU.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 128;

// A state, by its place in arrays [directions, states, channels].
struct DampedState {
  __device__ DampedState(const DampedPoles& of, int64_t place)
      : p(sigmoid(of.delta[place])),
        damped(sigmoid(of.alpha[place])),
        q(1 - p * damped),
        beta(of.beta[place]),
        eta(of.eta[place]),
        scale(1 / sqrt(static_cast<double>(of.states))),
        c(p * beta * eta * scale) {}

  __device__ static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

  double p, damped, q, beta, eta, scale, c;
};

// A thread takes a channel.
__global__ void damped_poles_kernel(DampedPoles of, float* a, float* c, float* skip) {
  const int64_t d = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (d >= of.channels) return;
  const int64_t all = of.directions * of.states;
  double direct = of.omega[d];
  for (int64_t n = 0; n < all; ++n) {
    const int64_t place = n * of.channels + d;
    const DampedState state(of, place);
    const bool later = n >= of.states;  // the second direction
    a[place] = static_cast<float>(state.q);
    const auto read = static_cast<float>(later ? state.c * state.q : state.c);
    for (int64_t k = 0; k < of.directions; ++k) {
      c[k * all * of.channels + place] = (k == 1) == later ? read : 0;
    }
    if (later) direct += state.c;
  }
  skip[d] = static_cast<float>(direct);
}

// A thread takes a state of a channel.
__global__ void damped_poles_backward_kernel(DampedPolesBackward b) {
  const DampedPoles& of = b.problem;
  const int64_t place = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t numbers = of.directions * of.states * of.channels;
  if (place >= numbers) return;
  const DampedState state(of, place);
  const bool later = place >= of.states * of.channels;
  const double of_read = b.grad_c[(later ? numbers : 0) + place];
  const double of_c = later ? of_read * state.q + b.grad_skip[place % of.channels] : of_read;
  const double of_q = b.grad_a[place] + (later ? of_read * state.c : 0);
  const double of_p = of_c * state.beta * state.eta * state.scale - of_q * state.damped;
  b.delta[place] = static_cast<float>(of_p * state.p * (1 - state.p));
  b.alpha[place] = static_cast<float>(-of_q * state.p * state.damped * (1 - state.damped));
  b.beta[place] = static_cast<float>(of_c * state.p * state.eta * state.scale);
  b.eta[place] = static_cast<float>(of_c * state.p * state.beta * state.scale);
}

}  // namespace

void damped_poles(const DampedPoles& of, float* a, float* c, float* skip, Stream stream) {
  launch(damped_poles_kernel, parts_of(of.channels, kThreads), kThreads, 0, stream, of, a, c, skip);
}

void damped_poles_backward(const DampedPolesBackward& b, Stream stream) {
  const DampedPoles& of = b.problem;
  launch(damped_poles_backward_kernel, parts_of(of.directions * of.states * of.channels, kThreads),
         kThreads, 0, stream, b);
}

}  // namespace lra::kernels::cuda
