// The plainest linear recurrence, with a state and a decay of its own for each channel:
//
//   h[t] = a[t] h[t - 1] + v[t].
//
// It is that of minGRU (Feng et al. 2024, arXiv:2410.01201) and of RG-LRU (De et al. 2024,
// arXiv:2402.19427). One multiply-add for three numbers of memory: plain code, which compilers turn
// into vectors, is as fast as memory. In the order of time no logarithms are needed, in which
// float32 loses three digits over 16,384 positions.
#pragma once

#include <cstdint>

#include "kernels/simd/bf16.h"

namespace lra::kernels {

// States are float for Bf16.
template <typename T>
struct GatedScan {
  int64_t batch = 0, length = 0, channels = 0;
  int64_t reversed_channels = 0;  // the last ones, whose time runs from an example's end
  const Wide<T>* a = nullptr;     // [batch, length, channels]
  const T* v = nullptr;           // the same
  // [batch], in [0, length]: positions from there on are padding, which is not read and where h and
  // the gradients are 0. Null: none.
  const int32_t* lengths = nullptr;
};

template <typename T>
struct GatedScanBackward {
  GatedScan<T> problem;     // v is not read
  const T* h = nullptr;     // from the forward pass
  const T* grad = nullptr;  // of h
  Wide<T>* grad_a = nullptr;
  T* grad_v = nullptr;
};

// Writes all of h [batch, length, channels]. The same bits at any number of threads.
template <typename T>
void gated_scan_forward(const GatedScan<T>& p, T* h);
// Writes all gradients: with r[t] = grad[t] + a[t + 1] r[t + 1], that of v is r, that of a[t] is
// r[t] h[t - 1].
template <typename T>
void gated_scan_backward(const GatedScanBackward<T>& p);

}  // namespace lra::kernels
