// Loops over several threads. One pool for the whole program: OpenMP's, which LibTorch uses too, so
// that idle workers of one pool never spin against busy workers of another.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace lra {

int num_threads();
void set_num_threads(int count);

// Calls body(i) for every i in [0, count), each exactly once, handed out one at a time to whichever
// thread is free. `body` must not depend on order or thread. Of exceptions that of the
// lowest i is thrown again here, and no later i is begun once one is known.
void parallel_for_each(int64_t count, const std::function<void(int64_t)>& body);

// Calls body(begin, end) on at most num_threads() contiguous ranges that cover [0, count); a range
// has at least `grain` elements unless it is the only one.
void parallel_ranges(int64_t count, int64_t grain,
                     const std::function<void(int64_t, int64_t)>& body);

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
