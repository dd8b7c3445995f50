// Zero-order hold of kernels/scan/held_pairs.h on a CUDA device: a thread takes a pair of poles of
// a channel.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kPairThreads = 128;

struct ComplexDouble {
  double re = 0, im = 0;

  __device__ ComplexDouble operator*(double x) const { return {re * x, im * x}; }
  __device__ ComplexDouble operator+(const ComplexDouble& other) const {
    return {re + other.re, im + other.im};
  }
};
__device__ inline ComplexDouble product(const ComplexDouble& x, const ComplexDouble& y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
// x times the conjugate of y: the gradient of z = y w for w, with x that of z.
__device__ inline ComplexDouble gradient(const ComplexDouble& x, const ComplexDouble& y) {
  return {x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im};
}

// A thread's pair n of channel d, held.
struct PairOfThread {
  __device__ explicit PairOfThread(const HeldPairs& p)
      : place(static_cast<int64_t>(blockIdx.x) * kPairThreads + threadIdx.x),
        numbers(p.pairs * p.channels),
        n(place / p.channels),
        d(place % p.channels) {
    if (!is_there()) return;
    const int64_t pole = p.shared ? n : d * p.pairs + n;
    const double real = p.real[pole];
    lambda = {p.log_rate ? -exp(real) : real, p.frequency[pole]};
    const double step = exp(static_cast<double>(p.raw_dt[d]));
    dt = p.softplus ? log1p(step) : step;
    dt_slope = p.softplus ? step / (1 + step) : step;
    const double size = exp(lambda.re * dt), angle = lambda.im * dt;
    a = {size * cos(angle), size * sin(angle)};
    // 1 / lambda = conj(lambda) / |lambda|^2
    conjugate_inverse = lambda * (1 / (lambda.re * lambda.re + lambda.im * lambda.im));
    b = gradient({a.re - 1, a.im}, conjugate_inverse);
  }

  __device__ bool is_there() const { return place < numbers; }
  // Places in arrays [.., 2, pairs, channels] and [.., channels, pairs, 2].
  __device__ ComplexDouble plane_number(const float* planes, int64_t k) const {
    return {planes[2 * k * numbers + place], planes[(2 * k + 1) * numbers + place]};
  }
  __device__ int64_t in_c(const HeldPairs& p, int64_t k) const {
    return 2 * (k * numbers + d * p.pairs + n);
  }

  const int64_t place, numbers, n, d;
  ComplexDouble lambda, conjugate_inverse, a, b;  // b = (a - 1) / lambda
  double dt = 0, dt_slope = 0;
};

__global__ void held_pairs_kernel(HeldPairs p, float* to_a, float* to_c) {
  const PairOfThread own(p);
  if (!own.is_there()) return;
  to_a[own.place] = static_cast<float>(own.a.re);
  to_a[own.numbers + own.place] = static_cast<float>(own.a.im);
  for (int64_t k = 0; k < p.directions; ++k) {
    const float* const c = p.c + own.in_c(p, k);
    const ComplexDouble held = product({2.0 * c[0], 2.0 * c[1]}, own.b);
    to_c[2 * k * own.numbers + own.place] = static_cast<float>(held.re);
    to_c[(2 * k + 1) * own.numbers + own.place] = static_cast<float>(held.im);
  }
}

__global__ void held_pairs_backward_kernel(HeldPairsBackward problem) {
  const HeldPairs& p = problem.problem;
  const PairOfThread own(p);
  if (!own.is_there()) return;
  ComplexDouble of_b;
  for (int64_t k = 0; k < p.directions; ++k) {
    const float* const c = p.c + own.in_c(p, k);
    const ComplexDouble grad = own.plane_number(problem.grad_c, k);
    const ComplexDouble of_c = gradient(grad * 2.0, own.b);
    problem.grad_own_c[own.in_c(p, k)] = static_cast<float>(of_c.re);
    problem.grad_own_c[own.in_c(p, k) + 1] = static_cast<float>(of_c.im);
    of_b = of_b + gradient(grad, {2.0 * c[0], 2.0 * c[1]});
  }
  // b = (a - 1) / lambda: db = (da - b dlambda) / lambda.
  const ComplexDouble by_lambda = product(of_b, own.conjugate_inverse);
  const ComplexDouble of_a = own.plane_number(problem.grad_a, 0) + by_lambda;
  const ComplexDouble of_lambda =
      gradient(of_a, own.a) * own.dt + gradient(by_lambda, own.b) * -1.0;
  const ComplexDouble of_dt = gradient(of_a, product(own.a, own.lambda));
  float* const shares = problem.shares + own.d * p.pairs + own.n;
  // d lambda = lambda d log_rate
  shares[0] = static_cast<float>(of_lambda.re * (p.log_rate ? own.lambda.re : 1));
  shares[own.numbers] = static_cast<float>(of_lambda.im);
  shares[2 * own.numbers] = static_cast<float>(of_dt.re * own.dt_slope);
}

int64_t blocks_of(const HeldPairs& p) { return parts_of(p.pairs * p.channels, kPairThreads); }

}  // namespace

void held_pairs(const HeldPairs& p, float* a, float* c, Stream stream) {
  launch(held_pairs_kernel, blocks_of(p), kPairThreads, 0, stream, p, a, c);
}

void held_pairs_backward(const HeldPairsBackward& problem, Stream stream) {
  launch(held_pairs_backward_kernel, blocks_of(problem.problem), kPairThreads, 0, stream, problem);
}

}  // namespace lra::kernels::cuda
