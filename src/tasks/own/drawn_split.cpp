#include "tasks/own/drawn_split.h"

#include <algorithm>
#include <numeric>

#include "base/permutation.h"
#include "base/rng.h"

namespace lra::tasks {
namespace {

// How many of `count` each class gives: its share, rounded by the largest remainders, and at most
// all but one.
std::vector<size_t> shares_of(const std::vector<size_t>& sizes, size_t count) {
  const size_t total = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
  std::vector<size_t> shares(sizes.size()), order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  size_t given = 0;
  for (size_t c = 0; c < sizes.size(); ++c) {
    if (sizes[c] == 0) continue;
    shares[c] = std::min(sizes[c] * count / total, sizes[c] - 1);
    given += shares[c];
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t c) { return sizes[c] * count % std::max<size_t>(total, 1); });
  while (given < count) {
    const size_t before = given;
    for (const size_t c : order) {
      if (given == count || shares[c] + 1 >= sizes[c]) continue;
      ++shares[c];
      ++given;
    }
    if (given == before) break;  // one example of each class is left
  }
  return shares;
}

}  // namespace

void draw_split(const std::vector<int32_t>& labels, FrameSplit to, size_t count, uint64_t seed,
                std::vector<FrameSplit>& splits) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (splits[i] != FrameSplit::kTrain) continue;
    const auto label = static_cast<size_t>(labels[i]);
    if (label >= sizes.size()) sizes.resize(label + 1);
    ++sizes[label];
  }
  std::vector<size_t> wanted = shares_of(sizes, count);
  const Permutation order(std::max<size_t>(labels.size(), 1), derive_key(seed, RandomUse::kSplit));
  for (size_t k = 0; k < labels.size(); ++k) {
    const auto i = static_cast<size_t>(order(k));
    if (splits[i] != FrameSplit::kTrain) continue;
    size_t& rest = wanted[static_cast<size_t>(labels[i])];
    if (rest == 0) continue;
    --rest;
    splits[i] = to;
  }
}

}  // namespace lra::tasks
