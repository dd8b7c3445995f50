// How fast this machine multiplies matrices: what the speed of a model is compared with.
#pragma once

namespace lra::analysis {

// Floating-point operations per second of a product of two 2048 x 2048 matrices with the threads
// that are set: the fastest of three, after one that is not timed, of the faster of the library's
// product and ops::linear, or of that alone where the library's is slow (ops/precision.h).
// bfloat16 or float32.
double gemm_flops_per_s(bool bf16);

}  // namespace lra::analysis
