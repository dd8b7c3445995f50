// Convolution along the sequence, a kernel for each channel, summed directly: for kernels of few
// numbers, where that is faster than Fourier transforms (transforms.h).
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

template <typename T>
struct Convolution {
  int64_t batch = 0, length = 0, channels = 0;
  int64_t width = 0;                // of the kernel
  int64_t future = 0;               // its first lag is -future; may be outside [0, width)
  const T* x = nullptr;             // [batch, length, channels]
  const uint8_t* valid = nullptr;   // [batch, length], 0 or 1; null: all positions are valid
  const Wide<T>* kernel = nullptr;  // [width, channels]
  T* y = nullptr;                   // [batch, length, channels]
};

// y[b, t, c] = sum over j of kernel[j, c] x[b, t + future - j, c], with 0 for x outside of the
// sequence and where it is not valid; y is 0 where it is not valid. The gradient of x is the same
// function of the gradient of y, with the kernel reversed and future' = width - 1 - future. The
// same bits at any number of threads. Error against fp64 (convolution_test.cpp): width 2^-23 of the
// sum of absolute values, and 2^-8 of itself more in bfloat16.
template <typename T>
void convolve(const Convolution<T>& p);

// The gradient of the kernel, [width, channels]: the sum over b and t of grad[b, t, c] x[b, t +
// future - j, c] over valid positions t; p.kernel and p.y are not used. Runs of kConvolutionRows
// positions are summed, then the runs in their order: (kConvolutionRows + batch length /
// kConvolutionRows) 2^-23 of the sum of absolute values.
inline constexpr int64_t kConvolutionRows = 256;
template <typename T>
void convolution_kernel_gradient(const Convolution<T>& p, const T* grad, Wide<T>* grad_kernel);

// Sixteen channels of one position.
inline constexpr int64_t kPanelChannels = 16;
template <typename W>
struct alignas(64) PanelRow {
  W of[kPanelChannels];
};
// Lengths and widths of panels are multiples of this.
inline constexpr int64_t kPanelRows = 8;

namespace ref {
// y[t] = sum over j < width of kernel[j] x[t + width - 1 - j] for t < rows.
template <typename W>
void convolve_panel(int64_t rows, int64_t width, const PanelRow<W>* x, const PanelRow<W>* kernel,
                    PanelRow<W>* y);
// sums[j] += sum over t < rows of grad[t] x[t + width - 1 - j] for j < width.
template <typename W>
void correlate_panel(int64_t rows, int64_t width, const PanelRow<W>* x, const PanelRow<W>* grad,
                     PanelRow<W>* sums);
}  // namespace ref
LRA_DECLARE_SIMD(void convolve_panel(int64_t rows, int64_t width, const PanelRow<float>* x,
                                     const PanelRow<float>* kernel, PanelRow<float>* y);)
LRA_DECLARE_SIMD(void correlate_panel(int64_t rows, int64_t width, const PanelRow<float>* x,
                                      const PanelRow<float>* grad, PanelRow<float>* sums);)

}  // namespace lra::kernels
