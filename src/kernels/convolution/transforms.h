// Convolution along the sequence by Fourier transforms, for kernels of many lags.
#pragma once

#include "kernels/convolution/convolution.h"
#include "kernels/convolution/fourier.h"

namespace lra::kernels {

// The same function as convolve(), and its gradients, at a cost that grows with the logarithm of
// the width; 0 <= future < width. Error against fp64 (transforms_test.cpp): 4e-7 of the product of
// the norms of kernel and x, and of gradient and x, of the same channel; for norms between 1e-18
// and 1e18, which differ by less than that. Channels c and c + 16 of 32 share a transform, so a NaN
// in one is one in the other. The same bits at any number of threads. Memory beyond the arguments:
// 128 numbers a thread, which it keeps, for each of the fourier_size(length + width) places of the
// circle at most, and the gradients of all lags once for each kTransformExamples examples.
template <typename T>
void convolve_by_transforms(const Convolution<T>& p);
// The gradients of x and kernel, which share transforms; either may be null. p.y is not used.
template <typename T>
void convolution_gradients_by_transforms(const Convolution<T>& p, const T* grad, T* grad_x,
                                         Wide<T>* grad_kernel);

// Examples that share a task, and with it the transform of the kernel.
inline constexpr int64_t kTransformExamples = 8;

// Examples [begin, end) of the 32 channels from `channel` on.
struct TransformTask {
  int64_t channel = 0, begin = 0, end = 0;
};

// The output of the forward pass; inputs and outputs of the backward pass.
template <typename T>
struct TransformArrays {
  T* y = nullptr;
  const T* grad = nullptr;
  T* grad_x = nullptr;
  Wide<T>* grad_kernel = nullptr;  // written with the sum over the task's examples
};

// `space` has kTransformArrays tables.size rows of kFourierRow numbers.
inline constexpr int64_t kTransformArrays = 4;
template <typename T>
struct TransformParts {
  using W = Wide<T>;
  using Part = void(const Convolution<T>& p, const FourierTables<W>& tables,
                    const TransformTask& task, const TransformArrays<T>& arrays, W* space);
  Part *forward, *backward;
};
LRA_DECLARE_KERNELS(template <typename T> TransformParts<T> transform_parts();)

}  // namespace lra::kernels
