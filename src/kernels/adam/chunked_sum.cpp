#include "kernels/adam/chunked_sum.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"

namespace lra::kernels {

SumOfSquares sum_in_chunks(int64_t count,
                           const std::function<SumOfSquares(int64_t, int64_t)>& sum_chunk) {
  std::vector<SumOfSquares> sums(static_cast<size_t>((count + kSumChunk - 1) / kSumChunk));
  if (sums.empty()) return {};
  parallel_ranges(static_cast<int64_t>(sums.size()), 2, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      sums[static_cast<size_t>(c)] = sum_chunk(c * kSumChunk, std::min(count, (c + 1) * kSumChunk));
    }
  });
  while (sums.size() > 1) {
    for (size_t n = 0; n < sums.size() / 2; ++n) {
      const SumOfSquares &a = sums[2 * n], &b = sums[2 * n + 1];
      sums[n] = {a.sum + b.sum, a.finite && b.finite};
    }
    if (sums.size() % 2 != 0) sums[sums.size() / 2] = sums.back();
    sums.resize((sums.size() + 1) / 2);
  }
  return sums[0];
}

}  // namespace lra::kernels
