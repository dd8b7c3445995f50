#include "tasks/example_hashes.h"

#include "base/parallel.h"

namespace lra::tasks {

std::vector<Hash128> example_hashes(const Split& split, int64_t num_towers) {
  std::vector<Hash128> hashes(static_cast<size_t>(split.size()));
  parallel_ranges(split.size(), 256, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> tokens;
    for (int64_t i = begin; i < end; ++i) {
      Hasher hasher;
      for (int64_t tower = 0; tower < num_towers; ++tower) {
        tokens.resize(static_cast<size_t>(split.sequence_length(i, tower)) + 1);
        tokens.back() = -1;  // ends the sequence: no stored token is negative
        split.read_tokens(i, tower, std::span(tokens).first(tokens.size() - 1));
        hasher.append(std::as_bytes(std::span(tokens)));
      }
      hashes[static_cast<size_t>(i)] = hasher.digest();
    }
  });
  return hashes;
}

}  // namespace lra::tasks
