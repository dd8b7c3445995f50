// Linear layers: y = x W^T + b, forward and backward.
//
// float32 on the CPU runs on oneDNN if this torch has it, except on processors without AVX-512 for
// sums of 256 and more terms, which use the BLAS. Compared with at::linear at 2048^3, oneDNN is 2.1
// times as fast on Zen 5, and 1.2 to 1.3 times on Zen 4, whose AVX-512 has no higher peak than the
// AVX2 that the wheel's BLAS uses on AMD (bench/linear_bench.cpp). bfloat16 runs on tiles where
// there are any (kernels/gemm/linear.h), else on oneDNN too, widened to float32 on processors
// without products of bfloat16. float64 and every other case run at::linear. Which one float32
// takes is part of every run record (linear_choice).
//
// The gradients of weight and bias, sums over all tokens, are those of product.h: the same bits at
// any number of threads. bfloat16 x meets float32 weights, which are rounded once for both passes;
// sums are float32, and so are the gradients of weight and bias.
#pragma once

#include <string>

#include "ops/libtorch.h"

namespace lra::ops {

// x [..., K], weight [N, K], bias [N] or undefined -> [..., N].
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// The same of an x from which more is computed: x becomes the tensor to compute it from. On a
// device, the product of the backward pass is added to the gradient of that, instead of in a pass
// of its own.
Tensor linear_of_stream(Tensor& x, const Tensor& weight, const Tensor& bias = {});

// The backward pass on its own, without autograd: grad_x [..., K], grad_weight [N, K], grad_bias
// [N].
struct LinearGrads {
  Tensor x, weight, bias;
};
LinearGrads linear_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, bool need_x,
                            bool need_bias);
// Only grad_x: grad [M, N], weight [N, K] in the type of grad -> [M, K].
Tensor linear_backward_input(const Tensor& grad, const Tensor& weight);

// gelu_tanh(x W^T + b), on AVX-512 in one pass; not differentiable (feed_forward.h is).
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias);

// "library", "onednn" or "onednn, library for long sums": the implementation for float32 on the
// CPU.
std::string linear_choice();

}  // namespace lra::ops
