// One chunk of the matrix scan in vector code: sixteen positions of a head, and the products of its
// rows whose weights decay between them. c_i is the sum of log decays of the chunk up to row i.
#pragma once

#include <algorithm>

#include "kernels/aligned_buffer.h"
#include "kernels/gemm/gemm.h"
#include "kernels/scan/matrix_scan.h"
#include "kernels/simd/dot.h"

namespace lra::kernels::LRA_ISA {

inline constexpr int64_t kChunkRows = kMatrixScanChunk;
static_assert(kChunkRows == kLanes);

// Memory of a task, of which a thread has one at a time: matrices of whole vectors, [16, keys] and
// [16, values] for a chunk, [keys, values] for a state.
struct MatrixChunk {
  MatrixChunk(int64_t num_keys, int64_t num_values, int64_t kept, bool delta, bool has_reads,
              bool backward)
      : keys((num_keys + kLanes - 1) / kLanes * kLanes),
        values((num_values + kLanes - 1) / kLanes * kLanes),
        of_keys(kChunkRows * keys),
        of_values(kChunkRows * values),
        state_size(keys * values) {
    thread_local AlignedBuffer space;
    const int64_t chunks_of_keys = 6 + has_reads + backward * 5,
                  chunks_of_values = 3 + backward * 3;
    float* next = space.reserve(chunks_of_keys * of_keys + chunks_of_values * of_values +
                                4 * kChunkRows * kChunkRows + state_size + keys +
                                backward * (3 * state_size + kept * (state_size + of_values)));
    const auto take = [&](int64_t count) { return next += count, next - count; };
    for (float** rows : {&q, &k, &decay, &k_to_end, &q_from_start, &r_from_start}) {
      *rows = take(of_keys);
    }
    r = has_reads ? take(of_keys) : k;
    for (float** rows : {&v, &u, &o}) *rows = take(of_values);
    for (float** square : {&q_meets_k, &r_meets_k, &grad_q_meets_k, &grad_r_meets_k}) {
      *square = take(kChunkRows * kChunkRows);
    }
    state = take(state_size);
    whole_decay = take(keys);
    if (!backward) return;
    for (float** rows : {&from_start, &grad_q, &grad_r, &grad_k, &grad_log}) {
      *rows = take(of_keys);
    }
    for (float** rows : {&grad, &grad_u, &u_down}) *rows = take(of_values);
    for (float** square : {&grad_state, &state_down, &grad_state_down}) *square = take(state_size);
    starts = take(kept * state_size);
    if (delta) errors = take(kept * of_values);
  }

  const int64_t keys, values, of_keys, of_values, state_size;
  float *q, *k, *decay;  // exp(log decay)
  float* r;              // what the delta rule reads by: k, or rows of their own
  float* k_to_end;       // k_j exp(c_last - c_j)
  float* q_from_start;   // q_i exp(c_i)
  float* r_from_start;   // -r_i exp(c_i)
  float *v, *u, *o;
  float *q_meets_k, *r_meets_k;  // sum_n q_in k_jn exp(c_in - c_jn) for j <= i; of r for j < i
  float *grad_q_meets_k, *grad_r_meets_k;
  float *state, *whole_decay;  // exp(c_last)
  // The rest is of the backward pass.
  float* from_start = nullptr;  // exp(c_i)
  float* grad_q = nullptr;
  float* grad_r = nullptr;  // by the products in which a key reads, like a query
  float* grad_k = nullptr;  // by those in which it was written
  float* grad_log = nullptr;
  float *grad = nullptr, *grad_u = nullptr;
  float *u_down = nullptr, *state_down = nullptr, *grad_state_down = nullptr;  // transposes
  float* grad_state = nullptr;
  float *starts = nullptr, *errors = nullptr;  // states before all chunks, and rows of v - S^T r
};

// to [columns, rows] = the transpose of from [rows, columns], of whole vectors.
inline void transpose_matrix(const float* from, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < rows; i += kLanes) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      Floats block[kLanes];
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n) block[n] = load(from + (i + n) * columns + j);
      transpose_16x16(block);
#pragma GCC unroll 16
      for (int n = 0; n < kLanes; ++n) store(to + (j + n) * rows + i, block[n]);
    }
  }
}

// Everything that the decays inside a chunk make of q and k: running products, row by row. With
// kDelta also what keys read.
template <bool kDelta>
void meet_keys(const MatrixChunk& c) {
  const int64_t width = c.keys;
  std::fill_n(c.k_to_end, c.of_keys, 0.0f);
  std::fill_n(c.q_meets_k, kChunkRows * kChunkRows, 0.0f);
  if (kDelta) std::fill_n(c.r_meets_k, kChunkRows * kChunkRows, 0.0f);
  for (int64_t i = 0; i < kChunkRows; ++i) {
    const float *const q = c.q + i * width, *const r = c.r + i * width;
    for (int64_t j = 0; j < i; j += 4) {  // rows from i on are still 0
      Floats of_q[4] = {zeros(), zeros(), zeros(), zeros()};
      Floats of_r[4] = {zeros(), zeros(), zeros(), zeros()};
      for (int64_t n = 0; n < width; n += kLanes) {
        const Floats decay = load(c.decay + i * width + n), q_n = load(q + n), r_n = load(r + n);
#pragma GCC unroll 4
        for (int m = 0; m < 4; ++m) {
          float* const key = c.k_to_end + (j + m) * width + n;
          const Floats decayed = load(key) * decay;
          store(key, decayed);
          of_q[m] = multiply_add(q_n, decayed, of_q[m]);
          if (kDelta) of_r[m] = multiply_add(r_n, decayed, of_r[m]);
        }
      }
      const int64_t at = i * kChunkRows + j;
      store_sums(c.q_meets_k + at, of_q[0], of_q[1], of_q[2], of_q[3]);
      if (kDelta) store_sums(c.r_meets_k + at, of_r[0], of_r[1], of_r[2], of_r[3]);
    }
    std::copy_n(c.k + i * width, width, c.k_to_end + i * width);
    c.q_meets_k[i * (kChunkRows + 1)] = dot(q, c.k + i * width, width);
  }
}

// Rows referred to the chunk's start.
template <bool kDelta>
void refer_to_start(const MatrixChunk& c) {
  for (int64_t n = 0; n < c.keys; n += kLanes) {
    Floats product = broadcast(1.0f);
    for (int64_t at = n; at < c.of_keys; at += c.keys) {
      product = product * load(c.decay + at);
      store(c.q_from_start + at, product * load(c.q + at));
      if (kDelta) store(c.r_from_start + at, zeros() - product * load(c.r + at));
      if (c.from_start) store(c.from_start + at, product);
    }
    store(c.whole_decay + n, product);
  }
}

// Adds to the gradients of reading rows i those of their meetings with earlier keys.
template <bool kDelta>
void readers_back(const MatrixChunk& c) {
  const int64_t width = c.keys;
  for (int64_t n = 0; n < width; n += kLanes) {
    Floats decayed[kChunkRows];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kChunkRows; ++i) {
      const float* const of_q = c.grad_q_meets_k + i * kChunkRows;
      const float* const of_r = c.grad_r_meets_k + i * kChunkRows;
      const Floats decay = load(c.decay + i * width + n);
      Floats grad_q = load(c.grad_q + i * width + n), grad_r = zeros();
      if (kDelta) grad_r = load(c.grad_r + i * width + n);
#pragma GCC unroll 16
      for (int64_t j = 0; j < i; ++j) {
        decayed[j] = decayed[j] * decay;
        grad_q = multiply_add(broadcast(of_q[j]), decayed[j], grad_q);
        if (kDelta) grad_r = multiply_add(broadcast(of_r[j]), decayed[j], grad_r);
      }
      decayed[i] = load(c.k + i * width + n);
      store(c.grad_q + i * width + n, multiply_add(broadcast(of_q[i]), decayed[i], grad_q));
      if (kDelta) store(c.grad_r + i * width + n, grad_r);
    }
  }
}

// The same for the keys j that later rows meet.
template <bool kDelta>
void written_back(const MatrixChunk& c) {
  const int64_t width = c.keys;
  for (int64_t n = 0; n < width; n += kLanes) {
    Floats later_q[kChunkRows], later_r[kChunkRows];
#pragma GCC unroll 16
    for (int64_t j = kChunkRows - 1; j >= 0; --j) {
      const Floats decay =
          j + 1 < kChunkRows ? load(c.decay + (j + 1) * width + n) : broadcast(1.0f);
      Floats grad = load(c.grad_k + j * width + n);
#pragma GCC unroll 16
      for (int64_t i = j + 1; i < kChunkRows; ++i) {
        later_q[i] = later_q[i] * decay;
        grad = multiply_add(broadcast(c.grad_q_meets_k[i * kChunkRows + j]), later_q[i], grad);
        if (kDelta) {
          later_r[i] = later_r[i] * decay;
          grad = multiply_add(broadcast(c.grad_r_meets_k[i * kChunkRows + j]), later_r[i], grad);
        }
      }
      later_q[j] = load(c.q + j * width + n);
      if (kDelta) later_r[j] = load(c.r + j * width + n);
      const Floats of_itself = broadcast(c.grad_q_meets_k[j * (kChunkRows + 1)]);
      store(c.grad_k + j * width + n, multiply_add(of_itself, later_q[j], grad));
    }
  }
}

}  // namespace lra::kernels::LRA_ISA
