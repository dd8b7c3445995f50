#include "data/drawn_examples.h"

#include <algorithm>

#include "base/permutation.h"
#include "base/rng.h"

namespace lra {

std::vector<int64_t> drawn_examples(int64_t split_size, int64_t count) {
  std::vector<int64_t> examples(static_cast<size_t>(std::min(count, split_size)));
  if (examples.empty()) return examples;
  const Permutation drawn(static_cast<uint64_t>(split_size), derive_key(0, RandomUse::kAnalysis));
  for (size_t i = 0; i < examples.size(); ++i) examples[i] = static_cast<int64_t>(drawn(i));
  return examples;
}

std::vector<bool> held_out_tenth(int64_t count, uint64_t seed) {
  std::vector<bool> held_out(static_cast<size_t>(count));
  if (count == 0) return held_out;
  const Permutation order(static_cast<uint64_t>(count), derive_key(seed, RandomUse::kSplit));
  for (uint64_t i = 0; i < static_cast<uint64_t>(count / 10); ++i) held_out[order(i)] = true;
  return held_out;
}

}  // namespace lra
