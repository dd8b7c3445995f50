// A linear recurrence whose steps, inputs and outputs depend on the sequence: the selective state
// space S6 of Mamba (Gu and Dao 2023, arXiv:2312.00752, section 3.2). Channel d of group g has
// `states` real states of its own,
//
//   h_n[t] = exp(dt[t] a_n) h_n[t - 1] + dt[t] (b_gn[t] + bias_n) x[t],
//   y[t] = sum_n c_gn[t] h_n[t] + skip x[t],   dt[t] = log(1 + exp(raw_dt[t] + dt_bias)),
//
// with b and c shared by the channels of a group. One group and no bias are S6; several groups and
// a bias for each channel are the block-biased form (Yu and Erichson 2025, arXiv:2505.09022), whose
// states are complex: with frequencies, a_n becomes a_n + i frequency_n, b, bias and c are complex,
// and y is the real part.
//
// Sixteen channels are the vector axis and time is sequential. Memory beyond inputs and outputs: 64
// rows of states in each thread, and in the backward pass the states before every 64th position, in
// each thread or kept from the forward pass, and for each sixteen channels the shares of the
// gradients of b and c.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

inline constexpr int64_t kSelectiveChannels = 16;  // of one task
inline constexpr int64_t kSelectiveChunk = 64;     // positions between states that are kept

// Steps, states and sums are float for Bf16.
template <typename T>
struct SelectiveScan {
  using W = Wide<T>;
  int64_t batch = 0, length = 0, channels = 0, states = 0;
  int64_t groups = 1;         // of channels / groups neighbors each
  bool reversed = false;      // time runs from the end of each example to its start
  const T* x = nullptr;       // [batch, length, channels]
  const T* raw_dt = nullptr;  // the same
  // [batch, length, groups, planes() states]: real parts, and then imaginary ones.
  const T *b = nullptr, *c = nullptr;
  // [batch], in [0, length]: positions from there on are padding, which is not read and where y and
  // the gradients are 0. Null: none.
  const int32_t* lengths = nullptr;
  const W* a = nullptr;          // [states, channels], at most 0
  const W* frequency = nullptr;  // the same, in radians; null: real states
  const W* bias = nullptr;       // [planes() states, channels]; null: 0
  const W* dt_bias = nullptr;    // [channels]
  const W* skip = nullptr;       // [channels]; null: 0

  constexpr int64_t planes() const { return frequency ? 2 : 1; }
  constexpr int64_t state_numbers() const { return planes() * states; }
};

template <typename T>
struct SelectiveScanBackward {
  SelectiveScan<T> problem;
  const T* grad = nullptr;  // of y
  T *grad_x = nullptr, *grad_dt = nullptr, *grad_b = nullptr, *grad_c = nullptr;
  // Gradients of a, frequency if there is one, bias, dt_bias and skip, one after another:
  // selective_parameters(problem) numbers. Those of bias and skip are written with and without one.
  Wide<T>* grad_parameters = nullptr;
  // The states that the forward pass kept; null: computed again, with the same bits.
  const Wide<T>* starts = nullptr;
};

template <typename T>
constexpr int64_t selective_parameters(const SelectiveScan<T>& p) {
  return (2 * p.state_numbers() + 2) * p.channels;
}

// Writes all of y [batch, length, channels]. Error against fp64 (selective_scan_test.cpp): 2e-6 of
// the largest |y|, 8e-6 with complex states. The same bits at any number of threads. `starts`,
// unless it is null, is room for selective_starts(p) numbers that the backward pass of the same
// implementation takes; the reference neither writes nor reads them.
template <typename T>
void selective_scan_forward(const SelectiveScan<T>& p, T* y, Wide<T>* starts = nullptr);
// Writes all gradients. Those of b and c are summed over sixteen channels at a time, those of
// parameters for each example, and then in the order of channels and of examples.
template <typename T>
void selective_scan_backward(const SelectiveScanBackward<T>& p);

// One example and neighboring channels of a group, `count` from `channel` on.
struct SelectiveTask {
  int64_t example = 0, group = 0, channel = 0, count = 0;
};

// A cut of the channels of each group into tasks of `most` channels, and a last one of the rest.
// (What is constexpr here, kernels for a device may call too.)
template <typename T>
struct SelectiveTasks {
  constexpr explicit SelectiveTasks(const SelectiveScan<T>& p, int64_t most = kSelectiveChannels)
      : most(most),
        width(p.channels / p.groups),
        of_group((width + most - 1) / most),
        of_example(p.groups * of_group) {}

  constexpr SelectiveTask task(int64_t n) const {
    const int64_t group = n % of_example / of_group, first = n % of_group * most;
    return {n / of_example, group, group * width + first, std::min(most, width - first)};
  }

  const int64_t most, width;           // numbers of channels, of a task and of a group
  const int64_t of_group, of_example;  // numbers of tasks
};

// States before every kSelectiveChunk-th position, of all tasks.
template <typename T>
constexpr int64_t selective_starts_of_task(const SelectiveScan<T>& p) {
  return (p.length + kSelectiveChunk - 1) / kSelectiveChunk * p.state_numbers() *
         kSelectiveChannels;
}
template <typename T>
constexpr int64_t selective_starts(const SelectiveScan<T>& p) {
  return p.batch * SelectiveTasks<T>(p).of_example * selective_starts_of_task(p);
}

// A task's shares of gradients: of b and c [length, state_numbers()], written up to the example's
// length, and of the parameters, where its channels of the example's [selective_parameters()] are
// written.
template <typename W>
struct SelectiveShares {
  W *b = nullptr, *c = nullptr, *parameters = nullptr;
};

// Places in arrays of the rows of a task, in the order of time.
class SelectiveRows {
 public:
  template <typename T>
  constexpr SelectiveRows(const SelectiveScan<T>& p, const SelectiveTask& task)
      : length(p.lengths ? p.lengths[task.example] : p.length),
        reversed_(p.reversed),
        first_(task.example * p.length),
        channels_(p.channels),
        channel_(task.channel),
        row_of_b_(p.groups * p.state_numbers()),
        state_(task.group * p.state_numbers()) {}

  // Position of row `time`; times from `length` on are padding.
  constexpr int64_t place(int64_t time) const {
    return reversed_ && time < length ? length - 1 - time : time;
  }
  // The first channel of a row of x, and the first state of one of b.
  constexpr int64_t of_x(int64_t time) const {
    return (first_ + place(time)) * channels_ + channel_;
  }
  constexpr int64_t of_b(int64_t time) const { return (first_ + place(time)) * row_of_b_ + state_; }

  const int64_t length;

 private:
  const bool reversed_;
  const int64_t first_, channels_, channel_, row_of_b_, state_;
};

template <typename T>
struct SelectiveScanParts {
  // `starts`: those of the task, or null.
  void (*forward)(const SelectiveScan<T>& p, const SelectiveTask& task, T* y, Wide<T>* starts);
  void (*backward)(const SelectiveScanBackward<T>& p, const SelectiveTask& task,
                   const SelectiveShares<Wide<T>>& shares, const Wide<T>* starts);
};
LRA_DECLARE_KERNELS(template <typename T> SelectiveScanParts<T> selective_scan_parts();)

}  // namespace lra::kernels
