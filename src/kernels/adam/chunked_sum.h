// Sums whose order of additions depends only on the number of elements.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/adam/adam.h"

namespace lra::kernels {

inline constexpr int64_t kSumChunk = 8192;

// Calls sum_chunk(begin, end) for each run of kSumChunk elements, on several threads, and adds the
// results pairwise as a binary tree.
SumOfSquares sum_in_chunks(int64_t count,
                           const std::function<SumOfSquares(int64_t, int64_t)>& sum_chunk);

}  // namespace lra::kernels
