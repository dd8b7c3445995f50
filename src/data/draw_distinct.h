// Generated examples, none of which is there twice.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "data/first_seen.h"
#include "data/stopping.h"

namespace lra {

inline constexpr uint32_t kMaxRedraws = 1000;  // of one example

// Draws `size` examples of a split, `at_once` of them in parallel, and then, in order, those again
// whose hash `seen` has: the same examples at any number of threads. draw(index, redraw) depends on
// its arguments alone and hash_of() on the example. redrawn(index, times) is told of an example
// that was drawn again; with more than kMaxRedraws it is still a copy, and redrawn() throws.
// take(std::span<const Example>) receives all examples in order. Throws on a stop request.
template <typename Draw, typename HashOf, typename Redrawn, typename Take>
void draw_distinct(int64_t size, int64_t at_once, FirstSeen& seen, const Draw& draw,
                   const HashOf& hash_of, const Redrawn& redrawn, const Take& take) {
  using Example = decltype(draw(int64_t{}, uint32_t{}));
  for (int64_t begin = 0; begin < size; begin += at_once) {
    throw_if_stopped();
    std::vector<Example> block(static_cast<size_t>(std::min(at_once, size - begin)));
    std::vector<Hash128> hashes(block.size());
    parallel_for_each(static_cast<int64_t>(block.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      block[at] = draw(begin + i, uint32_t{0});
      hashes[at] = hash_of(block[at]);
    });
    for (size_t at = 0; at < block.size(); ++at) {
      const int64_t index = begin + static_cast<int64_t>(at);
      uint32_t redraw = 0;
      while (seen.add(hashes[at], index) && ++redraw <= kMaxRedraws) {
        block[at] = draw(index, redraw);
        hashes[at] = hash_of(block[at]);
      }
      if (redraw > 0) redrawn(index, redraw);
    }
    take(std::span<const Example>(block));
  }
}

}  // namespace lra
