#include "tasks/near_copies.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/parallel.h"
#include "data/drawn_examples.h"
#include "data/stopping.h"
#include "tasks/own/custom.h"
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

  // A passage counts as the same as the one with its tokens in reverse, and as that with the
  // opposite sign.
  bool may_be_reversed() const { return !are_letters_; }
  bool may_be_negated() const { return in_steps_; }

  // Tokens of a passage: so many that a trillion passages are possible. Two random sequences of two
  // symbols share all passages of eight.
  size_t passage_tokens(const Split& split) const {
    constexpr double kBits = 40;
    constexpr int64_t kExamples = 100;
    constexpr size_t kShortest = 8, kLongest = 64;
    std::set<int32_t> symbols;
    std::vector<int32_t> words;
    for (const int64_t example : drawn_examples(split.size(), kExamples)) {
      for (int64_t tower = 0; tower < num_towers_; ++tower) {
        read(split, example, tower, words);
        symbols.insert(words.begin(), words.end());
      }
    }
    const double bits = std::log2(std::max<double>(2, static_cast<double>(symbols.size())));
    return std::clamp(static_cast<size_t>(std::ceil(kBits / bits)), kShortest, kLongest);
  }

  int64_t num_towers() const { return num_towers_; }

  void read(const Split& split, int64_t example, int64_t tower, std::vector<int32_t>& words) const {
    words.resize(
        static_cast<size_t>(split.sequence_length(example, tower) * split.words_per_token()));
    split.read_tokens(example, tower, words);
    if (in_steps_) standardize(words, static_cast<size_t>(split.words_per_token()));
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

std::vector<int32_t> negated(std::vector<int32_t> words) {
  for (int32_t& word : words) word = -word;
  return words;
}

// The words of a sequence, and those that count as the same; all have one length.
struct Variants {
  std::vector<std::vector<int32_t>> forwards, backwards;
};

Variants variants_of(const std::vector<int32_t>& words, const WordReader& reader,
                     size_t words_per_token) {
  Variants variants;
  variants.forwards.push_back(words);
  if (reader.may_be_negated()) variants.forwards.push_back(negated(words));
  if (!reader.may_be_reversed()) return variants;
  for (const std::vector<int32_t>& forwards : variants.forwards) {
    variants.backwards.push_back(reversed(forwards, words_per_token));
  }
  return variants;
}

// A passage has the smallest hash of its variants.
Sketch sketch_of(const Variants& variants, size_t words_per_token, size_t tokens) {
  const size_t width = tokens * words_per_token, size = variants.forwards[0].size();
  Sketch kept;  // a heap, its largest hash in front
  for (size_t at = 0; at + width <= size; at += words_per_token) {
    uint64_t hash = UINT64_MAX;
    const auto take = [&](const std::vector<std::vector<int32_t>>& all, size_t begin) {
      for (const std::vector<int32_t>& words : all) {
        hash = std::min(hash, hash64(std::as_bytes(std::span(words).subspan(begin, width))));
      }
    };
    take(variants.forwards, at);
    take(variants.backwards, size - at - width);
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

// The sketches of the sequences of drawn examples, one after another.
std::vector<Sketch> sketches_of(const Split& split, int64_t most, const WordReader& reader,
                                size_t tokens) {
  const std::vector<int64_t> drawn = drawn_examples(split.size(), most);
  const int64_t towers = reader.num_towers();
  std::vector<Sketch> sketches(drawn.size() * static_cast<size_t>(towers));
  parallel_ranges(static_cast<int64_t>(sketches.size()), 64, [&](int64_t begin, int64_t end) {
    throw_if_stopped();
    const auto width = static_cast<size_t>(split.words_per_token());
    std::vector<int32_t> words;
    for (int64_t i = begin; i < end; ++i) {
      reader.read(split, drawn[static_cast<size_t>(i / towers)], i % towers, words);
      sketches[static_cast<size_t>(i)] =
          sketch_of(variants_of(words, reader, width), width, tokens);
    }
  });
  return sketches;
}

struct Place {
  uint64_t hash;
  int32_t sequence;
  auto operator<=>(const Place&) const = default;
};

// The examples with a sequence that has half of the hashes. Those that many sequences share tell
// nothing.
std::set<int64_t> examples_near(const Sketch& sketch, const std::vector<Place>& places,
                                int64_t num_towers) {
  constexpr int64_t kMostSharers = 100;
  std::vector<int32_t> sharers;
  for (const uint64_t hash : sketch) {
    const auto [first, last] = std::ranges::equal_range(places, hash, {}, &Place::hash);
    if (last - first > kMostSharers) continue;
    for (auto place = first; place != last; ++place) sharers.push_back(place->sequence);
  }
  std::ranges::sort(sharers);
  std::set<int64_t> near;
  for (size_t begin = 0, end = 0; begin < sharers.size(); begin = end) {
    while (end < sharers.size() && sharers[end] == sharers[begin]) ++end;
    if (2 * (end - begin) >= kKept) near.insert(sharers[begin] / num_towers);
  }
  return near;
}

// True if each sequence of an example is near one of the same other example: pairs of texts have
// one of the two in common with many others.
bool is_near(std::span<const Sketch> sequences, const std::vector<Place>& places) {
  const auto num_towers = static_cast<int64_t>(sequences.size());
  std::set<int64_t> near = examples_near(sequences[0], places, num_towers);
  for (const Sketch& sketch : sequences.subspan(1)) {
    if (near.empty()) return false;
    const std::set<int64_t> others = examples_near(sketch, places, num_towers);
    std::erase_if(near, [&](int64_t example) { return !others.contains(example); });
  }
  return !near.empty();
}

// Examples of a split that were judged, and those of them that are near another.
struct Judged {
  std::vector<bool> was_judged, is_near;
};

// Adds what a reader's sketches say about each split.
void judge(const Dataset& dataset, const WordReader& reader, const std::string& reference,
           const std::vector<std::string>& splits, std::vector<Judged>& judged) {
  const size_t tokens = reader.passage_tokens(dataset.split(reference));
  const auto towers = static_cast<size_t>(reader.num_towers());
  std::vector<Place> places;
  const std::vector<Sketch> others =
      sketches_of(dataset.split(reference), kMostOthers, reader, tokens);
  for (size_t i = 0; i < others.size(); ++i) {
    for (const uint64_t hash : others[i]) places.push_back({hash, static_cast<int32_t>(i)});
  }
  std::ranges::sort(places);
  for (size_t s = 0; s < splits.size(); ++s) {
    const auto sketches = sketches_of(dataset.split(splits[s]), kMostJudged, reader, tokens);
    const size_t count = sketches.size() / towers;
    judged[s].was_judged.resize(count);
    judged[s].is_near.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const auto sequences = std::span(sketches).subspan(i * towers, towers);
      if (std::ranges::any_of(sequences, &Sketch::empty)) continue;
      judged[s].was_judged[i] = true;
      judged[s].is_near[i] = judged[s].is_near[i] || is_near(sequences, places);
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
