#include "checks/published_data.h"

#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/text_format.h"

namespace lra::checks {
namespace {

std::vector<Split> splits_of(const Dataset& dataset, bool of_test) {
  std::vector<Split> splits;
  for (const auto& [name, unused] : dataset.manifest().splits) {
    if ((name == "test") == of_test) splits.push_back(dataset.split(name));
  }
  return splits;
}

void append_hashes(const Split& split, std::vector<Hash128>& hashes) {
  const auto found = parallel_map(split.size(), 256, [&](int64_t i) {
    return Hasher()
        .append(std::to_string(split.label(i)) + "\n")
        .append(std::as_bytes(split.stored_bytes(i)))
        .digest();
  });
  hashes.insert(hashes.end(), found.begin(), found.end());
}

}  // namespace

SplitCounts counts_of(const Dataset& dataset) {
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, unused] : dataset.manifest().splits) {
    sizes[name] = dataset.split(name).size();
  }
  return counts_of(sizes);
}

SplitCounts counts_of(const std::map<std::string, int64_t>& sizes) {
  SplitCounts counts;
  for (const auto& [name, size] : sizes) (name == "test" ? counts.test : counts.train) += size;
  return counts;
}

std::string text_of(const SplitCounts& counts) {
  return thousands(counts.train) + " + " + thousands(counts.test);
}

std::string hash_of_examples(const Dataset& dataset) {
  Hasher all;
  for (const bool of_test : {false, true}) {
    std::vector<Hash128> hashes;
    for (const Split& split : splits_of(dataset, of_test)) append_hashes(split, hashes);
    std::ranges::sort(hashes);
    for (const Hash128& hash : hashes) all.append(to_hex(hash) + "\n");
    all.append("\n");
  }
  return to_hex(all.digest());
}

}  // namespace lra::checks
