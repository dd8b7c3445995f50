#include "tasks/near_copies.h"

#include <algorithm>
#include <bit>
#include <cmath>
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

constexpr int64_t kPassage = 8;  // tokens
constexpr size_t kKept = 32;     // hashes of an example
constexpr int64_t kMostOthers = 100'000, kMostJudged = 10'000;

using Sketch = std::vector<uint64_t>;  // ascending; empty: too few passages

// Words of examples; letters small, real values as numbers of steps.
class WordReader {
 public:
  explicit WordReader(const Dataset& dataset)
      : num_towers_(dataset.manifest().num_towers),
        are_values_(has_own_values(dataset.manifest())),
        are_letters_(is_text(dataset.manifest()) || is_own_text(dataset.manifest())) {
    if (are_values_) find_steps(dataset.split("train"));
  }

  void read(const Split& split, int64_t example, std::vector<int32_t>& words) const {
    words.clear();
    for (int64_t tower = 0; tower < num_towers_; ++tower) {
      const size_t before = words.size();
      words.resize(before + static_cast<size_t>(split.sequence_length(example, tower) *
                                                split.words_per_token()));
      split.read_tokens(example, tower, std::span(words).subspan(before));
    }
    for (size_t i = 0; are_letters_ && i < words.size(); ++i) {
      if (words[i] >= 'A' + 1 && words[i] <= 'Z' + 1) words[i] += 'a' - 'A';  // byte + 1
    }
    for (size_t i = 0; are_values_ && i < words.size(); ++i) {
      words[i] = static_cast<int32_t>(std::lround(
          std::clamp(std::bit_cast<float>(words[i]) / steps_[i % steps_.size()], -1e6f, 1e6f)));
    }
  }

 private:
  void find_steps(const Split& train) {
    const auto channels = static_cast<size_t>(train.words_per_token());
    std::vector<double> sum(channels), squares(channels);
    double count = 0;
    std::vector<int32_t> words;
    for (const int64_t i : drawn_examples(train.size(), 1000)) {
      for (int64_t tower = 0; tower < num_towers_; ++tower) {
        words.resize(static_cast<size_t>(train.sequence_length(i, tower)) * channels);
        train.read_tokens(i, tower, words);
        for (size_t at = 0; at < words.size(); ++at) {
          const double value = std::bit_cast<float>(words[at]);
          sum[at % channels] += value;
          squares[at % channels] += value * value;
        }
        count += static_cast<double>(words.size() / channels);
      }
    }
    for (size_t c = 0; c < channels; ++c) {
      const double mean = sum[c] / count;
      const double deviation = std::sqrt(std::max(0.0, squares[c] / count - mean * mean));
      steps_.push_back(static_cast<float>(std::max(deviation / 4, 1e-30)));
    }
  }

  int64_t num_towers_;
  bool are_values_, are_letters_;
  std::vector<float> steps_;  // of each channel
};

Sketch sketch_of(std::span<const int32_t> words, size_t words_per_token) {
  const size_t width = kPassage * words_per_token;
  Sketch kept;  // a heap, its largest hash in front
  for (size_t at = 0; at + width <= words.size(); at += words_per_token) {
    const uint64_t hash = hash64(std::as_bytes(words.subspan(at, width)));
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

std::vector<Sketch> sketches_of(const Split& split, int64_t most, const WordReader& reader) {
  const std::vector<int64_t> drawn = drawn_examples(split.size(), most);
  std::vector<Sketch> sketches(drawn.size());
  parallel_ranges(static_cast<int64_t>(drawn.size()), 64, [&](int64_t begin, int64_t end) {
    throw_if_stopped();
    std::vector<int32_t> words;
    for (int64_t i = begin; i < end; ++i) {
      reader.read(split, drawn[static_cast<size_t>(i)], words);
      sketches[static_cast<size_t>(i)] =
          sketch_of(words, static_cast<size_t>(split.words_per_token()));
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

}  // namespace

std::vector<NearCopies> near_copies(const Dataset& dataset, const std::string& reference,
                                    const std::vector<std::string>& splits) {
  const WordReader reader(dataset);
  std::vector<Place> places;
  const std::vector<Sketch> others = sketches_of(dataset.split(reference), kMostOthers, reader);
  for (size_t i = 0; i < others.size(); ++i) {
    for (const uint64_t hash : others[i]) places.push_back({hash, static_cast<int32_t>(i)});
  }
  std::ranges::sort(places);
  std::vector<NearCopies> all;
  std::vector<int32_t> sharers;
  for (const std::string& split : splits) {
    NearCopies& found = all.emplace_back();
    for (const Sketch& sketch : sketches_of(dataset.split(split), kMostJudged, reader)) {
      if (sketch.empty()) continue;
      ++found.num_judged;
      found.num_near += is_near(sketch, places, sharers);
    }
  }
  return all;
}

}  // namespace lra::tasks
