#include "checks/baseline.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/parallel.h"
#include "data/drawn_examples.h"

namespace lra::checks {
namespace {

// Examples of train that are read, fewer if they are long: a second of processor time.
constexpr int64_t kMostExamples = 10000, kFewestExamples = 1000, kMostTokens = 20'000'000;
constexpr int64_t kPlacesAtEnds = 64, kMostPlaces = 1 << 20;
constexpr size_t kNoToken = 256, kNumSymbols = kNoToken + 1;

// A word of a token, counted from the first token, or from the last: -1 is the last.
struct Place {
  int64_t tower = 0, position = 0, word = 0;
};

// A byte, an id, or the bits of a value; nothing behind the ends.
std::optional<int32_t> word_at(const Split& split, int64_t example, Place place) {
  const int64_t size = split.sequence_length(example, place.tower);
  const int64_t index = place.position < 0 ? size + place.position : place.position;
  if (index < 0 || index >= size) return std::nullopt;
  if (split.token_bytes() == 1) {
    return split.stored_bytes(example, place.tower)[static_cast<size_t>(index)];
  }
  return split.word(example, place.tower, index * split.words_per_token() + place.word);
}

std::vector<Place> places_of(const Split& train, int64_t num_towers) {
  const int64_t length = train.sequence_length(0, 0), words = train.words_per_token();
  bool is_fixed = num_towers == 1 && length * words <= kMostPlaces;
  for (int64_t i = 0; is_fixed && i < train.size(); ++i) {
    is_fixed = train.sequence_length(i, 0) == length;
  }
  std::vector<Place> places;
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    for (int64_t p = is_fixed ? 0 : -kPlacesAtEnds; p < (is_fixed ? length : kPlacesAtEnds); ++p) {
      for (int64_t word = 0; word < words; ++word) {
        places.push_back({.tower = tower, .position = p, .word = word});
      }
    }
  }
  return places;
}

// The label that goes with each symbol at one place, and how often it does on train. A symbol is a
// byte, or the range of words between two edges: for floats, bits are ordered as the values of one
// sign are.
struct Rule {
  std::vector<int32_t> edges;
  std::array<int32_t, kNumSymbols> label{};
  int64_t num_right = 0;

  size_t symbol(std::optional<int32_t> word, bool is_byte) const {
    if (!word) return kNoToken;
    if (is_byte) return static_cast<size_t>(*word);
    return static_cast<size_t>(std::ranges::upper_bound(edges, *word) - edges.begin());
  }
};

// Edges between all different words, or between equal shares of them if they are many.
std::vector<int32_t> edges_of(const std::vector<std::optional<int32_t>>& found) {
  constexpr size_t kWordsPerRange = 20;
  std::vector<int32_t> words;
  for (const auto& word : found) {
    if (word) words.push_back(*word);
  }
  std::ranges::sort(words);
  std::vector<int32_t> different = words;
  different.erase(std::unique(different.begin(), different.end()), different.end());
  const size_t most = std::clamp<size_t>(words.size() / kWordsPerRange, 2, kNoToken);
  if (different.size() <= most) {
    if (!different.empty()) different.erase(different.begin());
    return different;
  }
  std::vector<int32_t> edges;
  for (size_t k = 1; k < most; ++k) edges.push_back(words[k * words.size() / most]);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

Rule learn(const Split& train, Place place, int64_t num_classes) {
  const bool is_byte = train.token_bytes() == 1;
  // Read once: those of one place are far apart in memory.
  std::vector<std::optional<int32_t>> words(static_cast<size_t>(train.size()));
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = word_at(train, static_cast<int64_t>(i), place);
  }
  Rule rule;
  if (!is_byte) rule.edges = edges_of(words);
  std::vector<int64_t> counts(kNumSymbols * static_cast<size_t>(num_classes));
  for (int64_t i = 0; i < train.size(); ++i) {
    const int32_t label = train.label(i);
    if (label >= num_classes) continue;
    const size_t symbol = rule.symbol(words[static_cast<size_t>(i)], is_byte);
    ++counts[symbol * static_cast<size_t>(num_classes) + static_cast<size_t>(label)];
  }
  for (size_t symbol = 0; symbol < kNumSymbols; ++symbol) {
    const auto begin = counts.begin() + static_cast<ptrdiff_t>(symbol) * num_classes;
    const auto best = std::max_element(begin, begin + num_classes);
    rule.label[symbol] = static_cast<int32_t>(best - begin);
    rule.num_right += *best;
  }
  return rule;
}

double accuracy_of(const Split& train, const Split& test, Place place, int64_t num_classes) {
  const Rule rule = learn(train, place, num_classes);
  const bool is_byte = test.token_bytes() == 1;
  return share_right(
      test, [&](int64_t i) { return rule.label[rule.symbol(word_at(test, i, place), is_byte)]; });
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
  const auto num_right = parallel_map(static_cast<int64_t>(places.size()), 8, [&](int64_t p) {
    return learn(some, places[static_cast<size_t>(p)], num_classes).num_right;
  });
  const Place best =
      places[static_cast<size_t>(std::ranges::max_element(num_right) - num_right.begin())];
  result.accuracy = accuracy_of(some, test, best, num_classes);
  return result;
}

Baseline first_token_baseline(const std::string& name, const Split& train, const Split& test,
                              int64_t num_classes) {
  return {.name = name, .accuracy = accuracy_of(train, test, {}, num_classes)};
}

}  // namespace lra::checks
