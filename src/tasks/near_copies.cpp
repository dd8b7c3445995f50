#include "tasks/near_copies.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/parallel.h"
#include "tasks/custom/custom.h"
#include "tasks/drawn_examples.h"
#include "tasks/stopping.h"
#include "tasks/text_checks.h"

namespace lra::tasks {
namespace {

constexpr size_t kKept = 32;  // hashes of an example
constexpr int64_t kMostOthers = 100'000, kMostJudged = 10'000;

using Sketch = std::vector<uint64_t>;  // ascending; empty: too few passages

// Brings each channel to mean 0 and deviation 1 and rounds it to quarters.
void standardize(std::span<int32_t> words, size_t channels) {
  const double count = static_cast<double>(words.size() / channels);
  for (size_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (size_t at = c; at < words.size(); at += channels) {
      const double value = std::bit_cast<float>(words[at]);
      sum += value;
      squares += value * value;
    }
    const double mean = sum / count;
    const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
    const double step = std::max(deviation / 4, 1e-6 * std::abs(mean) + 1e-30);
    for (size_t at = c; at < words.size(); at += channels) {
      words[at] = static_cast<int32_t>(
          std::lround(std::clamp((std::bit_cast<float>(words[at]) - mean) / step, -1e6, 1e6)));
    }
  }
}

// Words of examples; letters small, real values as they are or `in_steps`: standardized and
// rounded.
class WordReader {
 public:
  WordReader(const Dataset& dataset, bool in_steps)
      : num_towers_(dataset.manifest().num_towers),
        in_steps_(in_steps),
        are_letters_(is_text(dataset.manifest()) || is_own_text(dataset.manifest())) {}

  // True if a passage counts as the same as the one with its tokens in reverse.
  bool may_be_reversed() const { return !are_letters_; }

  // Tokens of a passage: so many that a trillion passages are possible. Two random sequences of two
  // symbols share all passages of eight.
  size_t passage_tokens(const Split& split) const {
    constexpr double kBits = 40;
    constexpr int64_t kExamples = 100;
    constexpr size_t kShortest = 8, kLongest = 64;
    std::set<int32_t> symbols;
    std::vector<int32_t> words;
    for (const int64_t example : drawn_examples(split.size(), kExamples)) {
      read(split, example, words);
      symbols.insert(words.begin(), words.end());
    }
    const double bits = std::log2(std::max<double>(2, static_cast<double>(symbols.size())));
    return std::clamp(static_cast<size_t>(std::ceil(kBits / bits)), kShortest, kLongest);
  }

  void read(const Split& split, int64_t example, std::vector<int32_t>& words) const {
    words.clear();
    for (int64_t tower = 0; tower < num_towers_; ++tower) {
      const size_t before = words.size();
      words.resize(before + static_cast<size_t>(split.sequence_length(example, tower) *
                                                split.words_per_token()));
      const auto added = std::span(words).subspan(before);
      split.read_tokens(example, tower, added);
      if (in_steps_) standardize(added, static_cast<size_t>(split.words_per_token()));
    }
    for (size_t i = 0; are_letters_ && i < words.size(); ++i) {
      if (words[i] >= 'A' + 1 && words[i] <= 'Z' + 1) words[i] += 'a' - 'A';  // byte + 1
    }
  }

 private:
  int64_t num_towers_;
  bool in_steps_, are_letters_;
};

std::vector<int32_t> reversed(std::span<const int32_t> words, size_t words_per_token) {
  std::vector<int32_t> turned(words.size());
  for (size_t from = 0, to = words.size(); from < words.size(); from += words_per_token) {
    to -= words_per_token;
    std::ranges::copy(words.subspan(from, words_per_token),
                      turned.begin() + static_cast<int64_t>(to));
  }
  return turned;
}

// With `backwards`, words in reverse, a passage has the smaller hash of its two directions.
Sketch sketch_of(std::span<const int32_t> words, std::span<const int32_t> backwards,
                 size_t words_per_token, size_t tokens) {
  const size_t width = tokens * words_per_token;
  Sketch kept;  // a heap, its largest hash in front
  for (size_t at = 0; at + width <= words.size(); at += words_per_token) {
    uint64_t hash = hash64(std::as_bytes(words.subspan(at, width)));
    if (!backwards.empty()) {
      const auto turned = backwards.subspan(words.size() - at - width, width);
      hash = std::min(hash, hash64(std::as_bytes(turned)));
    }
    if (kept.size() == kKept && hash >= kept.front()) continue;
    if (std::ranges::find(kept, hash) != kept.end()) continue;
    if (kept.size() == kKept) {
      std::ranges::pop_heap(kept);
      kept.pop_back();
    }
    kept.push_back(hash);
    std::ranges::push_heap(kept);
  }
  if (kept.size() < kKept) return {};
  std::ranges::sort(kept);
  return kept;
}

std::vector<Sketch> sketches_of(const Split& split, int64_t most, const WordReader& reader,
                                size_t tokens) {
  const std::vector<int64_t> drawn = drawn_examples(split.size(), most);
  std::vector<Sketch> sketches(drawn.size());
  parallel_ranges(static_cast<int64_t>(drawn.size()), 64, [&](int64_t begin, int64_t end) {
    throw_if_stopped();
    const auto width = static_cast<size_t>(split.words_per_token());
    std::vector<int32_t> words, backwards;
    for (int64_t i = begin; i < end; ++i) {
      reader.read(split, drawn[static_cast<size_t>(i)], words);
      if (reader.may_be_reversed()) backwards = reversed(words, width);
      sketches[static_cast<size_t>(i)] = sketch_of(words, backwards, width, tokens);
    }
  });
  return sketches;
}

struct Place {
  uint64_t hash;
  int32_t example;
  auto operator<=>(const Place&) const = default;
};

// True if one example has half of the hashes. Those that many examples share tell nothing.
bool is_near(const Sketch& sketch, const std::vector<Place>& places,
             std::vector<int32_t>& sharers) {
  constexpr int64_t kMostSharers = 100;
  sharers.clear();
  for (const uint64_t hash : sketch) {
    const auto [first, last] = std::ranges::equal_range(places, hash, {}, &Place::hash);
    if (last - first > kMostSharers) continue;
    for (auto place = first; place != last; ++place) sharers.push_back(place->example);
  }
  std::ranges::sort(sharers);
  for (size_t begin = 0, end = 0; begin < sharers.size(); begin = end) {
    while (end < sharers.size() && sharers[end] == sharers[begin]) ++end;
    if (2 * (end - begin) >= kKept) return true;
  }
  return false;
}

// Examples of a split that were judged, and those of them that are near another.
struct Judged {
  std::vector<bool> was_judged, is_near;
};

// Adds what a reader's sketches say about each split.
void judge(const Dataset& dataset, const WordReader& reader, const std::string& reference,
           const std::vector<std::string>& splits, std::vector<Judged>& judged) {
  const size_t tokens = reader.passage_tokens(dataset.split(reference));
  std::vector<Place> places;
  const std::vector<Sketch> others =
      sketches_of(dataset.split(reference), kMostOthers, reader, tokens);
  for (size_t i = 0; i < others.size(); ++i) {
    for (const uint64_t hash : others[i]) places.push_back({hash, static_cast<int32_t>(i)});
  }
  std::ranges::sort(places);
  std::vector<int32_t> sharers;
  for (size_t s = 0; s < splits.size(); ++s) {
    const auto sketches = sketches_of(dataset.split(splits[s]), kMostJudged, reader, tokens);
    judged[s].was_judged.resize(sketches.size());
    judged[s].is_near.resize(sketches.size());
    for (size_t i = 0; i < sketches.size(); ++i) {
      if (sketches[i].empty()) continue;
      judged[s].was_judged[i] = true;
      judged[s].is_near[i] = judged[s].is_near[i] || is_near(sketches[i], places, sharers);
    }
  }
}

}  // namespace

std::vector<NearCopies> near_copies(const Dataset& dataset, const std::string& reference,
                                    const std::vector<std::string>& splits) {
  std::vector<Judged> judged(splits.size());
  judge(dataset, WordReader(dataset, false), reference, splits, judged);
  if (has_own_values(dataset.manifest())) {
    judge(dataset, WordReader(dataset, true), reference, splits, judged);
  }
  std::vector<NearCopies> all;
  for (const Judged& split : judged) {
    all.push_back({.num_judged = std::ranges::count(split.was_judged, true),
                   .num_near = std::ranges::count(split.is_near, true)});
  }
  return all;
}

}  // namespace lra::tasks
