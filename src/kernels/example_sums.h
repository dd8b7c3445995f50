// Gradients of parameters, which each example has a share in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/parallel.h"

namespace lra::kernels {

// to[i] = the sum over the examples, in their order, of shares [batch, count].
template <typename W>
void sum_over_examples(const W* shares, int64_t batch, int64_t count, W* to) {
  parallel_ranges(count, 1 << 12, [&](int64_t begin, int64_t end) {
    std::fill(to + begin, to + end, W{0});
    for (int64_t b = 0; b < batch; ++b) {
      const W* from = shares + b * count;
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

}  // namespace lra::kernels
