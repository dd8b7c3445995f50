#include "checks/equal_examples.h"

#include <algorithm>

#include "base/hash.h"
#include "base/parallel.h"

namespace lra::checks {
namespace {

Hash128 content_hash(const Split& split, int64_t example, int64_t num_towers) {
  std::vector<Hash128> sequences;
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    const std::vector<int32_t> tokens = split.all_tokens(example, tower);
    sequences.push_back(hash128(std::as_bytes(std::span(tokens))));
  }
  return hash_of(sequences);
}

}  // namespace

Hash128 hash_of(std::span<const Hash128> sequences) {
  return sequences.size() == 1 ? sequences[0] : hash128(std::as_bytes(sequences));
}

std::vector<Hash128> example_hashes(const Split& split, int64_t num_towers) {
  return parallel_map(split.size(), 256,
                      [&](int64_t i) { return content_hash(split, i, num_towers); });
}

int64_t count_equal(const Split& split, const Split& other, int64_t num_towers) {
  auto known = example_hashes(other, num_towers);
  std::ranges::sort(known);
  const auto hashes = example_hashes(split, num_towers);
  return std::ranges::count_if(
      hashes, [&](const Hash128& hash) { return std::ranges::binary_search(known, hash); });
}

}  // namespace lra::checks
