// Linear recurrences with a diagonal state matrix, the core of S4D (Gu et al. 2022,
// arXiv:2206.11893, equation 4), DSS and exponential moving averages. Channel h has `modes` states
// of its own; in the first direction
//
//   s_n[l] = a_n s_n[l - 1] + x[l],   y[l] = Re sum_n c_n s_n[l] + skip x[l],
//
// and a second direction adds Re sum_n c'_n s'_n[l + 1] with s'_n[l] = a_n s'_n[l + 1] + x[l]: it
// starts at the end of each example and sees only positions after l, so that no position counts
// twice (like S4's bidirectional kernel). Callers with conjugate pairs fold their factor 2 into c,
// and a discretized input matrix as well.
//
// Channels are the vector axis and time is sequential, so memory beyond inputs and outputs is a few
// times length x 16 numbers in each thread, and nothing is kept for the backward pass. With many
// modes and several examples a convolution is faster (scan_by_convolution.h).
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

inline constexpr int64_t kScanChannels = 16;  // of one task
inline constexpr int64_t kMaxScanModes = 1024;

// Sums and states are float for Bf16. Planes: real and imaginary parts, in this order; with one
// plane states are real.
template <typename T>
struct DiagonalScan {
  using W = Wide<T>;
  int64_t batch = 0, length = 0, channels = 0, modes = 0;
  int64_t planes = 2;      // 1 or 2
  int64_t directions = 1;  // 1 or 2
  const T* x = nullptr;    // [batch, length, channels]
  // [batch], in [0, length]: positions from there on are padding, which is not read and where y and
  // the gradient of x are 0. Null: none.
  const int32_t* lengths = nullptr;
  const W* a = nullptr;     // [planes, modes, channels]
  const W* c = nullptr;     // [directions, planes, modes, channels]
  const W* skip = nullptr;  // [channels]; null: 0
};

template <typename T>
struct DiagonalScanBackward {
  DiagonalScan<T> problem;
  const T* grad = nullptr;  // of y
  T* grad_x = nullptr;
  // Gradients of a, c and skip, one after another: scan_parameters(problem) numbers. That of skip
  // is written with and without one.
  Wide<T>* grad_parameters = nullptr;
};

// The number of elements of a, c and skip together.
template <typename T>
int64_t scan_parameters(const DiagonalScan<T>& p) {
  return ((1 + p.directions) * p.planes * p.modes + 1) * p.channels;
}

// Writes all of y [batch, length, channels]. Error of the recurrence against fp64
// (diagonal_scan_test.cpp): 2e-6 of the largest |y| where |a| <= 1, and 4e-6 over 16,384 positions
// with 1 - |a| < 5e-5. The same bits at any number of threads.
template <typename T>
void diagonal_scan_forward(const DiagonalScan<T>& p, T* y);
// Writes grad_x and grad_parameters. States are computed again, 64 positions at a time. Gradients
// of parameters are summed for each example, and the examples in their order.
template <typename T>
void diagonal_scan_backward(const DiagonalScanBackward<T>& p);

// One example and kScanChannels channels from `channel` on, or as many as there are.
struct ScanTask {
  int64_t example = 0, channel = 0;
};

template <typename T>
struct ScanParts {
  void (*forward)(const DiagonalScan<T>& p, const ScanTask& task, T* y);
  // `grads`: the example's contribution to grad_parameters, in the same layout.
  void (*backward)(const DiagonalScanBackward<T>& p, const ScanTask& task, Wide<T>* grads);
};
LRA_DECLARE_KERNELS(template <typename T> ScanParts<T> scan_parts();)

}  // namespace lra::kernels
