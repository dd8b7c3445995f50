#include "tasks/equal_examples.h"

#include <algorithm>

#include "base/hash.h"
#include "base/parallel.h"
#include "tasks/first_seen.h"

namespace lra::tasks {
namespace {

// One hash per example over the tokens of every tower, in whatever order the towers are.
std::vector<Hash128> example_hashes(const Split& split, int64_t num_towers) {
  std::vector<Hash128> hashes(static_cast<size_t>(split.size()));
  parallel_ranges(split.size(), 256, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> tokens;
    for (int64_t i = begin; i < end; ++i) {
      std::vector<Hash128> towers;
      for (int64_t tower = 0; tower < num_towers; ++tower) {
        tokens.resize(static_cast<size_t>(split.sequence_length(i, tower)));
        split.read_tokens(i, tower, tokens);
        towers.push_back(hash128(std::as_bytes(std::span(tokens))));
      }
      std::ranges::sort(towers);
      hashes[static_cast<size_t>(i)] = hash128(std::as_bytes(std::span(towers)));
    }
  });
  return hashes;
}

}  // namespace

EqualExamples equal_examples(const Dataset& dataset) {
  EqualExamples equal;
  FirstSeen seen;
  for (const char* name : {"train", "val", "test"}) {
    if (!dataset.has(name)) continue;
    const auto begin = static_cast<int64_t>(equal.first.size());
    for (const Hash128& hash : example_hashes(dataset.split(name), dataset.manifest().num_towers)) {
      const auto number = static_cast<int64_t>(equal.first.size());
      equal.first.push_back(seen.add(hash, number).value_or(number));
    }
    equal.splits.push_back({name, begin, static_cast<int64_t>(equal.first.size())});
  }
  return equal;
}

}  // namespace lra::tasks
