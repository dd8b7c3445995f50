// Convolution of each channel with a few lags, a bias and SiLU, in one pass over memory each way:
// in front of the selective scan of Mamba (Gu and Dao 2023, arXiv:2312.00752, section 3.4).
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// Lags that rows in the first-level cache hold; longer kernels go through convolution.h.
inline constexpr int64_t kMostShortLags = 8;
// Positions of a task. Its shares of the parameters' gradients are summed in the order of tasks.
inline constexpr int64_t kShortRows = 512;

// y[b, t, c] = SiLU(bias[c] + sum over j of kernel[j, c] x[b, t + future - j, c]), with 0 for x
// outside of the sequence and where it is not valid; y is 0 where it is not valid.
template <typename T>
struct ShortConvolution {
  using W = Wide<T>;
  int64_t batch = 0, length = 0, channels = 0;
  int64_t width = 0;               // of the kernel, at most kMostShortLags
  int64_t future = 0;              // its first lag is -future, 0 <= future < width
  int64_t row_stride = 0;          // of x, [batch, length] rows the same distance apart
  const T* x = nullptr;            // [batch, length, channels]
  const uint8_t* valid = nullptr;  // [batch, length], 0 or 1; null: all positions are valid
  const W* kernel = nullptr;       // [width, channels]
  const W* bias = nullptr;         // [channels]
};

// Rows without gaps. Error against fp64 (short_convolution_test.cpp): 1e-6 of the largest |y|, the
// gradients 2e-6 of the largest; the same bits at any number of threads.
template <typename T>
void short_convolution_forward(const ShortConvolution<T>& p, T* y);
// grad, of y, and grad_x have rows without gaps; grad_parameters: [width + 1, channels], of kernel
// and bias. All are written whole.
template <typename T>
void short_convolution_backward(const ShortConvolution<T>& p, const T* grad, T* grad_x,
                                Wide<T>* grad_parameters);

// Positions [begin, end) of an example; `shares` is zeros at first.
template <typename T>
struct ShortConvolutionParts {
  void (*forward)(const ShortConvolution<T>& p, int64_t example, int64_t begin, int64_t end, T* y);
  void (*backward)(const ShortConvolution<T>& p, int64_t example, int64_t begin, int64_t end,
                   const T* grad, T* grad_x, Wide<T>* shares);
};
LRA_DECLARE_KERNELS(template <typename T> ShortConvolutionParts<T> short_convolution_parts();)

// The rows of x that position t of an example takes, lag by lag; `zeros` [channels] for those that
// are not there.
template <typename T>
struct ShortRows {
  ShortRows(const ShortConvolution<T>& p, int64_t example, int64_t t, const T* zeros) {
    for (int64_t j = 0; j < p.width; ++j) {
      const int64_t s = t + p.future - j, row = example * p.length + s;
      const bool is_there = is_valid(p, example, s);
      of[j] = is_there ? p.x + row * p.row_stride : zeros;
    }
  }
  static bool is_valid(const ShortConvolution<T>& p, int64_t example, int64_t t) {
    return 0 <= t && t < p.length && (p.valid == nullptr || p.valid[example * p.length + t] != 0);
  }
  const T* of[kMostShortLags] = {};
};

}  // namespace lra::kernels
