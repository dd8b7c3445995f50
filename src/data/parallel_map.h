// Results of many examples, computed by all threads.
#pragma once

#include <vector>

#include "base/parallel.h"

namespace lra {

// {f(0), ..., f(count - 1)}, each computed in one of the ranges of parallel_ranges(). No bool,
// since neighbors in a vector of them share a byte.
template <typename F>
auto parallel_map(int64_t count, int64_t grain, const F& f) {
  std::vector<decltype(f(int64_t{}))> results(static_cast<size_t>(count));
  parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) results[static_cast<size_t>(i)] = f(i);
  });
  return results;
}

}  // namespace lra
