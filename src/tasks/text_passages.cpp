#include "tasks/text_passages.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/quoted.h"
#include "base/text_format.h"
#include "data/drawn_examples.h"
#include "data/stopping.h"
#include "tasks/data_doubts.h"
#include "tasks/split_checks.h"

namespace lra::tasks {
namespace {

constexpr int64_t kMostCompared = 2000;
constexpr size_t kPassageBytes = 6;

// Numbers of examples that hold a passage, whose bytes are those of the key.
struct Passages {
  std::unordered_map<uint64_t, int32_t> counts;
  int64_t num_examples = 0;
};

Passages passages_of(const Split& split) {
  constexpr uint64_t kMask = (uint64_t{1} << (8 * kPassageBytes)) - 1;
  Passages passages;
  std::vector<uint64_t> found;
  for (const int64_t example : drawn_examples(split.size(), kMostCompared)) {
    throw_if_stopped();
    found.clear();
    uint64_t passage = 0;
    size_t length = 0;
    for (const uint8_t byte : split.stored_bytes(example, 0)) {
      passage = (passage << 8 | byte) & kMask;
      if (++length >= kPassageBytes) found.push_back(passage);
    }
    std::ranges::sort(found);
    const auto repeated = std::ranges::unique(found);
    found.erase(repeated.begin(), repeated.end());
    for (const uint64_t passage : found) ++passages.counts[passage];
    ++passages.num_examples;
  }
  return passages;
}

std::string text_of(uint64_t passage) {
  std::string text;
  for (size_t i = kPassageBytes; i-- > 0;) text += static_cast<char>(passage >> (8 * i) & 0xFF);
  return text;
}

double share_in(const Passages& passages, uint64_t passage) {
  const auto found = passages.counts.find(passage);
  if (found == passages.counts.end()) return 0;
  return static_cast<double>(found->second) / static_cast<double>(passages.num_examples);
}

// Takes the least of equally different passages, since a hash table has no order of its own.
uint64_t most_different(const Passages& a, const Passages& b) {
  uint64_t passage = 0;
  double most = 0;
  for (const Passages* one : {&a, &b}) {
    for (const auto& [key, count] : one->counts) {
      const double apart = std::abs(share_in(a, key) - share_in(b, key));
      if (apart < most || (apart == most && key > passage)) continue;
      passage = key;
      most = apart;
    }
  }
  return passage;
}

}  // namespace

std::vector<std::string> doubts_of_passages(const Dataset& dataset) {
  constexpr double kFarthest = 0.25, kStandardErrors = 8;
  std::vector<std::string> doubts;
  if (dataset.manifest().num_towers > 1) return doubts;  // few documents in many pairs
  const auto is_judged = [&](const char* name) {
    return dataset.has(name) && dataset.split(name).size() >= kFewestToJudge;
  };
  if (!is_judged("train")) return doubts;
  const Passages train = passages_of(dataset.split("train"));
  for (const char* name : {"val", "test"}) {
    if (!is_judged(name)) continue;
    const Passages other = passages_of(dataset.split(name));
    const uint64_t passage = most_different(train, other);
    const double usual = share_in(train, passage), found = share_in(other, passage);
    const double error = error_of_difference(usual, train.num_examples, found, other.num_examples);
    if (std::abs(usual - found) <= std::max(kFarthest, kStandardErrors * error)) continue;
    doubts.push_back(percent(found, 0) + " of the texts of " + name + " hold " +
                     in_quotes(text_of(passage)) + ", and " + percent(usual, 0) +
                     " of those of train: were they cleaned or written in the same way?");
  }
  return doubts;
}

}  // namespace lra::tasks
