// Layer normalization over the last axis (Ba et al., arXiv:1607.06450): y = xhat gamma + beta with
// xhat = (x - mean) rstd and rstd = 1 / sqrt(variance + eps). Not centered, mean is 0 and variance
// the mean of squares: the root mean square norm (Zhang and Sennrich 2019, arXiv:1910.07467). With
// several groups, row r has the gamma of group r % groups.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// Rows whose column sums are computed by one thread.
inline constexpr int64_t kNormRows = 128;

template <typename T>
struct LayerNormForward {
  int64_t rows = 0, columns = 0;
  double eps = 0;
  const T* x = nullptr;                            // [rows, columns]
  const Wide<T>*gamma = nullptr, *beta = nullptr;  // [groups, columns]; beta null: 0
  T* y = nullptr;                                  // [rows, columns]
  Wide<T>*mean = nullptr, *rstd = nullptr;         // [rows]
  int64_t groups = 1;
  bool centered = true;
};

// The variance is that of the deviations from the mean, of which a row is read again. Error against
// fp64 (layer_norm_test.cpp), with d the row's largest |x - mean|, m its largest |x| and
// k = 1e-6 (1 + columns / 512): mean k m; rstd k (1 + k (m / d)^2) of itself; y 2 k (m rstd |gamma|
// + |y|), and 2^-8 of itself more in bfloat16. A row that is not finite makes no other one so.
template <typename T>
void layer_norm_forward(const LayerNormForward<T>& p);

template <typename T>
struct LayerNormBackward {
  int64_t rows = 0, columns = 0;
  const T* grad = nullptr;                             // of y, [rows, columns]
  const T* x = nullptr;                                // [rows, columns]
  const Wide<T>*mean = nullptr, *rstd = nullptr;       // [rows]
  const Wide<T>* gamma = nullptr;                      // [groups, columns]
  T* dx = nullptr;                                     // [rows, columns]
  Wide<T>*grad_gamma = nullptr, *grad_beta = nullptr;  // [groups, columns]
  int64_t groups = 1;
  bool centered = true;
  const T* beside = nullptr;  // [rows, columns], added to dx; null: nothing
};

// dx = rstd (g - mean(g) - xhat mean(g xhat)) + beside with g = grad gamma and means over a row,
// not centered without mean(g); grad_gamma = sum over a group's rows of grad xhat, grad_beta,
// unless it is null, sum of grad. dx may be grad or beside; nothing else may overlap. Rows are
// summed in runs of kNormRows and the runs in their order: the same bits at any number of threads.
// Error against fp64 (layer_norm_test.cpp): dx 1e-6 of rstd times the row's largest |g|, 2^-24 of
// itself with a gradient beside it, and 2^-8 of itself more in bfloat16; sums (kNormRows + rows /
// kNormRows) 2^-24 of their sum of absolute values.
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p);

namespace ref {
template <typename T>
void layer_norm_rows(const LayerNormForward<T>& p, int64_t begin, int64_t end);
// Rows [begin, end): their dx, and their sums over columns.
template <typename T>
void layer_norm_rows_backward(const LayerNormBackward<T>& p, int64_t begin, int64_t end,
                              Wide<T>* grad_gamma, Wide<T>* grad_beta);
}  // namespace ref
LRA_DECLARE_SIMD(template <typename T>
                 void layer_norm_rows(const LayerNormForward<T>& p, int64_t begin, int64_t end);)
LRA_DECLARE_SIMD(template <typename T>
                 void layer_norm_rows_backward(const LayerNormBackward<T>& p, int64_t begin,
                                               int64_t end, float* grad_gamma, float* grad_beta);)

}  // namespace lra::kernels
