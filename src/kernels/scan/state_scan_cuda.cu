// The recurrence of kernels/scan/state_scan.h on a CUDA device. A thread takes a state of an
// example in one direction along the whole sequence. Rows are read kRows at a time, before the
// first of them is needed: what a step waits for is arithmetic, not memory.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sums.h"

namespace lra::kernels::cuda {
namespace {

// Blocks are small, so that few sequences still reach many processors.
constexpr int kStateThreads = 32, kRows = 16;

struct ComplexFloat {
  float re = 0, im = 0;

  __device__ ComplexFloat operator+(const ComplexFloat& other) const {
    return {re + other.re, im + other.im};
  }
  __device__ ComplexFloat conjugate() const { return {re, -im}; }
};

// a b + c
__device__ inline ComplexFloat multiply_add(const ComplexFloat& a, const ComplexFloat& b,
                                            const ComplexFloat& c) {
  return {fmaf(a.re, b.re, fmaf(-a.im, b.im, c.re)), fmaf(a.re, b.im, fmaf(a.im, b.re, c.im))};
}

// A thread's share: one state of an example, in one direction.
template <typename T>
struct StateOfThread {
  __device__ StateOfThread(const StateScan<T>& p, int64_t block, int64_t direction)
      : states(p.states),
        example(block / parts_of(p.states, kStateThreads)),
        state(block % parts_of(p.states, kStateThreads) * kStateThreads + threadIdx.x),
        rows(p, example, direction),
        step_v(direction == 0 ? 2 * states : -2 * states),
        step_x(p.directions * step_v) {}

  __device__ bool is_there() const { return state < states; }

  template <typename U>
  __device__ ComplexFloat load(const U* row) const {
    return {static_cast<float>(row[state]), static_cast<float>(row[states + state])};
  }
  template <typename U>
  __device__ void store(U* row, const ComplexFloat& z) const {
    row[state] = U(z.re);
    row[states + state] = U(z.im);
  }

  const int64_t states, example, state;
  const StateRows<T> rows;
  const int64_t step_v, step_x;  // from a row to that of the next time
};

template <typename T>
__global__ void state_forward_kernel(StateScan<T> p, int64_t blocks, T* x) {
  const StateOfThread<T> own(p, blockIdx.x % blocks, blockIdx.x / blocks);
  if (!own.is_there()) return;
  const ComplexFloat a = own.load(p.a);
  ComplexFloat state;
  const int64_t length = own.rows.length;
  int64_t of_v = own.rows.of_v(0), of_x = own.rows.of_x(0);
  for (int64_t left = length; left > 0; left -= kRows) {
    ComplexFloat v[kRows];
#pragma unroll
    for (int n = 0; n < kRows; ++n, of_v += own.step_v) {
      if (n < left) v[n] = own.load(p.v + of_v);
    }
#pragma unroll
    for (int n = 0; n < kRows; ++n, of_x += own.step_x) {
      state = multiply_add(a, state, v[n]);
      if (n < left) own.store(x + of_x, state);
    }
  }
  for (int64_t t = length; t < p.length; ++t) own.store(x + own.rows.of_x(t), {});
}

// A second direction adds to what the first left in the gradient of v. `shares`: of the gradient of
// a, [batch, 2, states].
template <typename T>
__global__ void state_backward_kernel(StateScanBackward<T> problem, int64_t direction,
                                      float* shares) {
  const StateScan<T>& p = problem.problem;
  const StateOfThread<T> own(p, blockIdx.x, direction);
  if (!own.is_there()) return;
  const ComplexFloat a = own.load(p.a).conjugate();
  ComplexFloat r, of_a;
  const int64_t length = own.rows.length, last = length - 1;
  int64_t of_x = own.rows.of_x(0) + last * own.step_x;
  int64_t of_v = own.rows.of_v(0) + last * own.step_v;
  for (int64_t left = length; left > 0; left -= kRows) {
    ComplexFloat grad[kRows], before[kRows], other[kRows], sum;
#pragma unroll
    for (int n = 0; n < kRows; ++n, of_x -= own.step_x) {
      if (n < left) grad[n] = own.load(problem.grad + of_x);
      if (n + 1 < left) before[n] = own.load(problem.x + of_x - own.step_x);
      if (n < left && direction > 0) other[n] = own.load(problem.grad_v + of_v - n * own.step_v);
    }
#pragma unroll
    for (int n = 0; n < kRows; ++n, of_v -= own.step_v) {
      r = multiply_add(a, r, grad[n]);
      sum = multiply_add(r, before[n].conjugate(), sum);
      if (n < left) own.store(problem.grad_v + of_v, r + other[n]);
    }
    of_a = of_a + sum;
  }
  for (int64_t t = length; t < p.length; ++t) own.store(problem.grad_v + own.rows.of_v(t), {});
  own.store(shares + own.example * 2 * p.states, of_a);
}

template <typename T>
int64_t blocks_of(const StateScan<T>& p) {
  LRA_CHECK(p.directions == 1 || p.directions == 2);
  return p.batch * parts_of(p.states, kStateThreads);
}

}  // namespace

template <typename T>
void state_scan_forward(const StateScan<T>& p, T* x, Stream stream) {
  const int64_t blocks = blocks_of(p);
  launch(state_forward_kernel<T>, p.directions * blocks, kStateThreads, 0, stream, p, blocks, x);
}

template <typename T>
int64_t state_scan_scratch(const StateScan<T>& p) {
  return p.directions * p.batch * 2 * p.states;
}

template <typename T>
void state_scan_backward(const StateScanBackward<T>& problem, float* scratch, Stream stream) {
  const StateScan<T>& p = problem.problem;
  const int64_t count = 2 * p.states;
  for (int64_t direction = 0; direction < p.directions; ++direction) {
    launch(state_backward_kernel<T>, blocks_of(p), kStateThreads, 0, stream, problem, direction,
           scratch + direction * p.batch * count);
  }
  sum_shares(p.directions * p.batch, count, scratch, problem.grad_a, stream);
}

template void state_scan_forward(const StateScan<float>&, float*, Stream);
template void state_scan_forward(const StateScan<Bf16>&, Bf16*, Stream);
template int64_t state_scan_scratch(const StateScan<float>&);
template int64_t state_scan_scratch(const StateScan<Bf16>&);
template void state_scan_backward(const StateScanBackward<float>&, float*, Stream);
template void state_scan_backward(const StateScanBackward<Bf16>&, float*, Stream);

}  // namespace lra::kernels::cuda
