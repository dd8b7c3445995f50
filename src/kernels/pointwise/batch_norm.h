// Batch normalization of the columns of a matrix (Ioffe and Szegedy 2015, arXiv:1502.03167): y =
// xhat gamma + beta with xhat = (x - mean) / sqrt(variance + eps), mean and biased variance of each
// column over its valid rows.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// Rows whose column sums are computed by one thread: the second pass over them finds them in the
// cache.
inline constexpr int64_t kBatchNormRows = 128;

template <typename T>
struct BatchNormForward {
  int64_t rows = 0, columns = 0;
  double eps = 0;
  const T* x = nullptr;                            // [rows, columns]
  const uint8_t* valid = nullptr;                  // [rows], 0 or 1; null: all rows are valid
  const Wide<T>*gamma = nullptr, *beta = nullptr;  // [columns]
  T* y = nullptr;                                  // [rows, columns], 0 in rows that are not valid
  Wide<T>*mean = nullptr, *variance = nullptr;     // [columns]; 0 without a valid row
};

// Returns the number of valid rows. Each slice of kBatchNormRows rows has a mean and a sum of
// squared deviations from it; slices are combined in double, in their order: the same bits at any
// number of threads. Rows that are not valid are not read. Error against fp64
// (batch_norm_test.cpp), with m the largest |x| of a column, s its deviation and k = kBatchNormRows
// 2^-24: mean k m, variance 2 k s^2 + 2 k m s + (k m)^2, y that of (x - mean) rstd gamma + beta
// with these, and 2^-8 of itself more in bfloat16.
template <typename T>
int64_t batch_norm_forward(const BatchNormForward<T>& p);

template <typename T>
struct BatchNormBackward {
  int64_t rows = 0, columns = 0;
  double eps = 0;
  const T* grad = nullptr;                             // of y, [rows, columns]
  const T* x = nullptr;                                // [rows, columns]
  const uint8_t* valid = nullptr;                      // [rows]; null: all rows are valid
  int64_t count = 0;                                   // of valid rows
  const Wide<T>*mean = nullptr, *variance = nullptr;   // [columns]
  const Wide<T>* gamma = nullptr;                      // [columns]
  T* dx = nullptr;                                     // [rows, columns], may be grad
  Wide<T>*grad_gamma = nullptr, *grad_beta = nullptr;  // [columns]
};

// grad_gamma = sum of grad xhat and grad_beta = sum of grad over the valid rows; dx = gamma rstd
// (grad - grad_beta / count - xhat grad_gamma / count), and 0 in rows that are not valid. Sums as
// above. Error against fp64 with the same mean and variance: sums k of their sum of absolute
// values; dx k of the sum of its terms' absolute values, and 2^-8 of itself more in bfloat16.
template <typename T>
void batch_norm_backward(const BatchNormBackward<T>& p);

// The passes over rows [begin, end), at most kBatchNormRows; arrays are [columns].
template <typename T>
struct BatchNormPasses {
  using W = Wide<T>;
  // Returns the number of valid rows; `squares` are sums of squared deviations from their mean.
  int64_t (*moments)(const BatchNormForward<T>& p, int64_t begin, int64_t end, W* mean, W* squares);
  // y = (x - mean) slope + beta.
  void (*forward)(const BatchNormForward<T>& p, int64_t begin, int64_t end, const W* slope);
  // Sums of grad (x - mean), and of grad.
  void (*sums)(const BatchNormBackward<T>& p, int64_t begin, int64_t end, W* products, W* sums);
  // dx = grad of_grad + (x - mean) of_x + constant.
  void (*backward)(const BatchNormBackward<T>& p, int64_t begin, int64_t end, const W* of_grad,
                   const W* of_x, const W* constant);
};
LRA_DECLARE_KERNELS(template <typename T> BatchNormPasses<T> batch_norm_passes();)

}  // namespace lra::kernels
