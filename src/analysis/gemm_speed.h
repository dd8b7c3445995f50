// Speed of matrix products on a device, to compare the speed of models with.
#pragma once

#include <ATen/core/Tensor.h>

namespace lra::analysis {

// Floating-point operations per second of a product of two matrices, of 2048 x 2048 on the CPU,
// with the threads that are set, and of 8192 x 8192 on a GPU, where a smaller one is over before
// the next is started: the fastest of three, after one that is not timed, of the faster of the
// library's product and ops::linear, or of that alone where the library's is slow
// (ops/precision.h). bfloat16 or float32.
double gemm_flops_per_s(bool bf16, at::Device device);

}  // namespace lra::analysis
