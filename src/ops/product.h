// Matrix products that give the same bits at any number of threads.
//
// A library cuts a product among the threads that it has, and the cut decides in which order an
// element's terms are added (docs/numerics.md). Here the cut depends only on the shapes, and each
// part is computed by one thread: a product of the library on one thread, or, for A^T B on
// processors with AVX2 or AVX-512, kernels/gemm/outer_products.h.
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// a [..., M, K] times b [..., K, N] -> [..., M, N]; the same leading axes, any strides, expanded
// axes too.
Tensor product(const Tensor& a, const Tensor& b);

// a [M, K] times b [K, N] plus an optional bias [N], all float32, by the library on larger parts
// than product() has: for large K, where making a part costs more. Without autograd.
Tensor deep_product(const Tensor& a, const Tensor& b, const Tensor& bias);

// a [rows, M]^T times b [rows, N] -> [M, N], a sum over all rows; without autograd. float32 for
// bfloat16.
Tensor sum_of_outer_products(const Tensor& a, const Tensor& b);

// Both sums of the gradients of a linear layer, whose rows may be read once: products as above, and
// rows [M] as sum_of_rows(a).
struct SumsOverRows {
  Tensor products, rows;
};
SumsOverRows sum_of_outer_products_and_rows(const Tensor& a, const Tensor& b);

// x [rows, columns] -> [columns], summed over the rows; without autograd. float32 for bfloat16.
Tensor sum_of_rows(const Tensor& x);

}  // namespace lra::ops
