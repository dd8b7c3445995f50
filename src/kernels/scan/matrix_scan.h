// A linear recurrence whose state is a matrix [K, V] for each head: decayed linear attention, and
// the delta rule. With a_t = exp(log_decay_t), one number or one for each row of S,
//
//   S_t = diag(a_t) S_{t-1} + k_t u_t^T,   o_t = S_t^T q_t,
//   u_t = beta_t v_t, or with `delta`   u_t = beta_t (v_t - (diag(a_t) S_{t-1})^T r_t),
//
// with r_t = k_t unless it is given.
//
// One decay for a head is the state space duality of Mamba-2 (Dao and Gu 2024, arXiv:2405.21060)
// and retention (Sun et al. 2023, arXiv:2307.08621), one for each row gated linear attention (Yang
// et al. 2023, arXiv:2312.06635) and HGRN2 (Qin et al. 2024, arXiv:2404.07904); the delta rule is
// that of DeltaNet (Yang et al. 2024, arXiv:2406.06484) with log_decay 0 and of Gated DeltaNet
// (Yang et al. 2024, arXiv:2412.06464, equation 10), which decays before it reads. Other r_t than
// k_t make it the generalized delta rule of RWKV-7 (Peng et al. 2025, arXiv:2503.14456).
//
// In chunks of sixteen positions: matrix products between a chunk and the state before it, and
// running products of decays inside the chunk, which never divide by a decay or exponentiate a
// difference, so that decays of any size, 0 included, are exact. Memory beyond inputs and outputs,
// in each thread: a state and a few chunks, and in the backward pass the states before every
// chunk, L K V / 16 numbers, and with the delta rule L V more.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

inline constexpr int64_t kMatrixScanChunk = 16;

// States and decays are float for Bf16.
template <typename T>
struct MatrixScan {
  using W = Wide<T>;
  int64_t batch = 0, length = 0, heads = 0;
  int64_t key_heads = 0;         // head h has the q and k of key head h key_heads / heads
  int64_t keys = 0, values = 0;  // K and V
  int64_t decays = 1;            // of a position and head: 1 or K
  int64_t reversed_heads = 0;    // the last heads, whose time runs from an example's end
  // Distances of [batch, length] rows of q, k, v and r.
  int64_t q_row = 0, k_row = 0, v_row = 0, r_row = 0;
  const T *q = nullptr, *k = nullptr;  // [batch, length, key_heads, K]
  const T* v = nullptr;                // [batch, length, heads, V]
  const T* r = nullptr;          // with the delta rule, [batch, length, key_heads, K]; null: k
  const W* log_decay = nullptr;  // [batch, length, heads, decays], at most 0
  const W* beta = nullptr;       // [batch, length, heads]; null: 1
  bool delta = false;            // the delta rule, with beta
  // [batch], in [0, length]: positions from there on are padding, which is not read and where o and
  // the gradients are 0. Null: none.
  const int32_t* lengths = nullptr;
};

template <typename T>
struct MatrixScanBackward {
  MatrixScan<T> problem;
  const T* grad = nullptr;  // of o
  // Rows without gaps; those of q and k for each head, [batch, length, heads, K].
  T *grad_q = nullptr, *grad_k = nullptr, *grad_v = nullptr;
  T* grad_r = nullptr;  // with r, as grad_k
  Wide<T>*grad_log_decay = nullptr, *grad_beta = nullptr;
};

// Writes all of o [batch, length, heads, V]. Error against fp64 (matrix_scan_test.cpp): 4e-6 of the
// largest |o|. The same bits at any number of threads: each head of an example is one task.
template <typename T>
void matrix_scan_forward(const MatrixScan<T>& p, T* o);
// Writes all gradients; those of beta and r only with them.
template <typename T>
void matrix_scan_backward(const MatrixScanBackward<T>& p);

// Places in arrays of the rows of a head of an example, in the order of time. (What is constexpr
// here, kernels for a device may call too.)
class MatrixScanRows {
 public:
  template <typename T>
  constexpr MatrixScanRows(const MatrixScan<T>& p, int64_t task)
      : length(p.lengths ? p.lengths[task / p.heads] : p.length),
        heads_(p.heads),
        first_(task / p.heads * p.length),
        head_(task % p.heads),
        first_key_(head_ * p.key_heads / p.heads * p.keys),
        first_value_(head_ * p.values),
        reversed_(head_ >= p.heads - p.reversed_heads) {}

  // The first number of row `time` of an array [batch, length, heads, width]; times from `length`
  // on are padding.
  constexpr int64_t at(int64_t time, int64_t width) const {
    return (row(time) * heads_ + head_) * width;
  }
  // The same in an array of keys or of values whose rows have this distance.
  constexpr int64_t at_key(int64_t time, int64_t distance) const {
    return row(time) * distance + first_key_;
  }
  constexpr int64_t at_value(int64_t time, int64_t distance) const {
    return row(time) * distance + first_value_;
  }

  const int64_t length;

 private:
  constexpr int64_t row(int64_t time) const {
    return first_ + (reversed_ && time < length ? length - 1 - time : time);
  }
  const int64_t heads_, first_, head_, first_key_, first_value_;
  const bool reversed_;
};

// The work of a task: head task % heads of example task / heads.
template <typename T>
struct MatrixScanParts {
  void (*forward)(const MatrixScan<T>& p, int64_t task, T* o);
  void (*backward)(const MatrixScanBackward<T>& p, int64_t task);
};
LRA_DECLARE_KERNELS(template <typename T> MatrixScanParts<T> matrix_scan_parts();)

}  // namespace lra::kernels
