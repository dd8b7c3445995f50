// A linear recurrence with a diagonal state matrix over given inputs, whose states are the result:
//
//   x[t] = a x[t - 1] + v[t],
//
// complex numbers, one a for each state. With an input and an output matrix around it, it is a
// state space of several inputs and outputs: S5 (Smith et al. 2023, arXiv:2208.04933, equation 2)
// and LRU (Orvieto et al. 2023, arXiv:2303.06349). A second direction has its own states, x'[t] = a
// x'[t + 1] + v[t], which start at the end of each example.
//
// (diagonal_scan.h has one input and one output for each group of states, which never leave the
// registers there.)
//
// States are the vector axis and time is sequential. The backward pass needs only the states that
// the forward pass wrote: with r[t] = g[t] + conj(a) r[t + 1] for the gradient g of x, the gradient
// of v[t] is r[t], and that of a is sum r[t] conj(x[t - 1]).
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

inline constexpr int64_t kScanStates = 64;  // of one task

// The recurrence itself runs in float for Bf16.
template <typename T>
struct StateScan {
  int64_t batch = 0, length = 0, states = 0;
  int64_t directions = 1;  // 1 or 2
  const T* v = nullptr;    // [batch, length, 2, states]: real parts, imaginary parts
  // [batch], in [0, length]: positions from there on are padding, which is not read and where x and
  // the gradient of v are 0. Null: none.
  const int32_t* lengths = nullptr;
  const Wide<T>* a = nullptr;  // [2, states]
};

template <typename T>
struct StateScanBackward {
  StateScan<T> problem;       // v is not read
  const T* x = nullptr;       // from the forward pass
  const T* grad = nullptr;    // of x
  T* grad_v = nullptr;        // with two directions a sum of two numbers of type T
  Wide<T>* grad_a = nullptr;  // [2, states]
};

// Writes all of x [batch, length, directions, 2, states]. Error against fp64
// (state_scan_test.cpp): 2e-6 of the largest |x| where |a| <= 1. The same bits at any number of
// threads.
template <typename T>
void state_scan_forward(const StateScan<T>& p, T* x);
// Writes grad_v and grad_a, which is summed for each example, and the examples in their order.
template <typename T>
void state_scan_backward(const StateScanBackward<T>& p);

// One example and kScanStates states from `state` on, or as many as there are.
struct StateTask {
  int64_t example = 0, state = 0;
};

template <typename T>
struct StateScanParts {
  void (*forward)(const StateScan<T>& p, const StateTask& task, T* x);
  // `grads`: the share of the example in grad_a, [2, states].
  void (*backward)(const StateScanBackward<T>& p, const StateTask& task, Wide<T>* grads);
};
LRA_DECLARE_KERNELS(template <typename T> StateScanParts<T> state_scan_parts();)

// Places of the rows of an example, in the order of a direction's time. (What is constexpr here,
// kernels for a device may call too.)
template <typename T>
class StateRows {
 public:
  constexpr StateRows(const StateScan<T>& p, int64_t example, int64_t direction)
      : length(p.lengths ? p.lengths[example] : p.length),
        p_(p),
        first_(example * p.length),
        direction_(direction) {}

  // Element 0 of row `time` of v, and of x.
  constexpr int64_t of_v(int64_t time) const { return (first_ + place(time)) * 2 * p_.states; }
  constexpr int64_t of_x(int64_t time) const {
    return ((first_ + place(time)) * p_.directions + direction_) * 2 * p_.states;
  }

  const int64_t length;

 private:
  // Times from `length` on are padding, in both directions.
  constexpr int64_t place(int64_t time) const {
    return direction_ == 0 || time >= length ? time : length - 1 - time;
  }
  const StateScan<T>& p_;
  const int64_t first_, direction_;
};

}  // namespace lra::kernels
