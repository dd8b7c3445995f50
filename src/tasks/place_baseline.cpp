#include "tasks/place_baseline.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/parallel.h"
#include "tasks/drawn_examples.h"

namespace lra::tasks {
namespace {

// Examples of train that are read, fewer if they are long: a second of processor time.
constexpr int64_t kMostExamples = 10000, kFewestExamples = 1000, kMostTokens = 20'000'000;
constexpr int64_t kPlacesAtEnds = 64;
constexpr size_t kNoToken = 256, kNumTokens = kNoToken + 1;

// Counted from the first token, or from the last: -1 is the last.
struct Place {
  int64_t tower = 0, position = 0;
};

size_t token_at(const Split& split, int64_t example, Place place) {
  const std::span<const uint8_t> tokens = split.stored_bytes(example, place.tower);
  const auto size = static_cast<int64_t>(tokens.size());
  const int64_t index = place.position < 0 ? size + place.position : place.position;
  return index < 0 || index >= size ? kNoToken : tokens[static_cast<size_t>(index)];
}

std::vector<Place> places_of(const Split& train, int64_t num_towers) {
  const int64_t length = train.sequence_length(0, 0);
  bool is_fixed = num_towers == 1;
  for (int64_t i = 0; is_fixed && i < train.size(); ++i) {
    is_fixed = train.sequence_length(i, 0) == length;
  }
  std::vector<Place> places;
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    for (int64_t p = is_fixed ? 0 : -kPlacesAtEnds; p < (is_fixed ? length : kPlacesAtEnds); ++p) {
      places.push_back({.tower = tower, .position = p});
    }
  }
  return places;
}

// The label that goes with each token at one place, and how often it does on train.
struct Rule {
  std::array<int32_t, kNumTokens> label{};
  int64_t num_right = 0;
};

Rule learn(const Split& train, Place place, int64_t num_classes) {
  std::vector<int64_t> counts(kNumTokens * static_cast<size_t>(num_classes));
  for (int64_t i = 0; i < train.size(); ++i) {
    const int32_t label = train.label(i);
    if (label >= num_classes) continue;
    ++counts[token_at(train, i, place) * static_cast<size_t>(num_classes) +
             static_cast<size_t>(label)];
  }
  Rule rule;
  for (size_t token = 0; token < kNumTokens; ++token) {
    const auto begin = counts.begin() + static_cast<ptrdiff_t>(token) * num_classes;
    const auto best = std::max_element(begin, begin + num_classes);
    rule.label[token] = static_cast<int32_t>(best - begin);
    rule.num_right += *best;
  }
  return rule;
}

}  // namespace

Baseline place_baseline(const Split& train, const Split& test, int64_t num_classes,
                        int64_t num_towers) {
  Baseline result{.name = "best single token", .accuracy = 0};
  if (train.size() == 0 || test.size() == 0) return result;
  const std::vector<Place> places = places_of(train, num_towers);
  const Split some = train.subset(
      drawn_examples(train.size(), std::clamp(kMostTokens / static_cast<int64_t>(places.size()),
                                              kFewestExamples, kMostExamples)));
  std::vector<int64_t> num_right(places.size());
  parallel_ranges(static_cast<int64_t>(places.size()), 8, [&](int64_t begin, int64_t end) {
    for (auto p = static_cast<size_t>(begin); p < static_cast<size_t>(end); ++p) {
      num_right[p] = learn(some, places[p], num_classes).num_right;
    }
  });
  const Place best =
      places[static_cast<size_t>(std::ranges::max_element(num_right) - num_right.begin())];
  const Rule rule = learn(some, best, num_classes);
  int64_t right = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    right += rule.label[token_at(test, i, best)] == test.label(i);
  }
  result.accuracy = static_cast<double>(right) / static_cast<double>(test.size());
  return result;
}

}  // namespace lra::tasks
