#include "checks/overlap.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/parallel.h"
#include "checks/words.h"
#include "data/stopping.h"

namespace lra::checks {
namespace {

uint64_t mixed(uint64_t hash) {
  hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
  hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93u;
  return hash ^ hash >> 32;
}

// The units that passages are made of: hashes of positions, or of the words of a text in small
// letters. Equal neighbors are one unit with their number.
class UnitReader {
 public:
  UnitReader(const Split& split, const StatsSettings& settings)
      : split_(split), is_text_(settings.input == InputKind::kText) {}

  void read(int64_t example, int64_t tower, std::vector<uint64_t>& units) {
    units.clear();
    if (is_text_) {
      for_each_word(split_.stored_bytes(example, tower),
                    [&](uint64_t word) { units.push_back(word); });
    } else {
      read_positions(example, tower, units);
    }
    size_t num_runs = 0;
    for (size_t begin = 0, end = 0; begin < units.size(); begin = end) {
      for (end = begin + 1; end < units.size() && units[end] == units[begin];) ++end;
      units[num_runs++] = mixed(units[begin] + (end - begin));
    }
    units.resize(num_runs);
  }

 private:
  void read_positions(int64_t example, int64_t tower, std::vector<uint64_t>& units) {
    const auto width = static_cast<size_t>(split_.words_per_token());
    words_.resize(static_cast<size_t>(split_.sequence_length(example, tower)) * width);
    split_.read_tokens(example, tower, words_);
    for (size_t at = 0; at < words_.size(); at += width) {
      units.push_back(width == 1 ? static_cast<uint32_t>(words_[at]) + uint64_t{1}
                                 : hash64(std::as_bytes(std::span(words_).subspan(at, width))));
    }
  }

  const Split& split_;
  bool is_text_;
  std::vector<int32_t> words_;
};

// Units of a passage, and which passages are kept: the same in every example, so that what two
// examples share is kept of both.
struct PassageRule {
  size_t units;
  uint64_t dropped = 0;  // bits of its hash that are 0
};

PassageRule rule_of(const Split& train, const StatsSettings& settings, int64_t num_positions) {
  constexpr int64_t kMostKept = int64_t{1} << 20, kKeptOfEach = 64;
  PassageRule rule{.units = settings.input == InputKind::kText ? 8u : 16u};
  const int64_t most = std::max(kMostKept, kKeptOfEach * train.size() * settings.num_towers);
  while (num_positions > most * static_cast<int64_t>(rule.dropped + 1)) {
    rule.dropped = 2 * rule.dropped + 1;
  }
  return rule;
}

// The different passages of a sequence, sorted; a polynomial hash that rolls from one to the next.
void passages_of(const std::vector<uint64_t>& units, const PassageRule& rule,
                 std::vector<uint64_t>& kept) {
  constexpr uint64_t kBase = 0x9E3779B97F4A7C15u;
  kept.clear();
  uint64_t hash = 0, last_power = 1;
  for (size_t i = 0; i < rule.units; ++i) last_power *= kBase;
  for (size_t i = 0; i < units.size(); ++i) {
    hash = hash * kBase + units[i];
    if (i >= rule.units) hash -= units[i - rule.units] * last_power;
    if (i + 1 < rule.units) continue;
    const uint64_t passage = mixed(hash);
    if ((passage & rule.dropped) == 0) kept.push_back(passage);
  }
  std::ranges::sort(kept);
  kept.erase(std::ranges::unique(kept).begin(), kept.end());
}

using Passages = std::vector<std::vector<uint64_t>>;  // of sequences

// The passages of each sequence of the examples from `first` to before `last`, one sequence after
// another.
Passages passages_between(const Split& split, int64_t first, int64_t last, const PassageRule& rule,
                          const StatsSettings& settings) {
  const int64_t towers = settings.num_towers;
  Passages passages(static_cast<size_t>((last - first) * towers));
  parallel_ranges(last - first, 64, [&](int64_t begin, int64_t end) {
    throw_if_stopped();
    UnitReader reader(split, settings);
    std::vector<uint64_t> units, kept;
    for (int64_t i = begin * towers; i < end * towers; ++i) {
      reader.read(first + i / towers, i % towers, units);
      passages_of(units, rule, kept);
      passages[static_cast<size_t>(i)] = kept;
    }
    split.release(first + begin, first + end);
  });
  return passages;
}

// A set that may say yes for one in many that it does not hold: of 12 million, one in 20.
class RoughSet {
 public:
  void add(uint64_t hash) { bits_[hash >> kUnusedBits] = true; }
  bool may_hold(uint64_t hash) const { return bits_[hash >> kUnusedBits]; }

 private:
  static constexpr int kUnusedBits = 36;
  std::vector<bool> bits_ = std::vector<bool>(size_t{1} << (64 - kUnusedBits));
};

struct PassagePlace {
  uint64_t passage;
  int32_t example;
  auto operator<=>(const PassagePlace&) const = default;
};

// Places in train of the passages of the test.
std::vector<PassagePlace> places_in_train(const Split& train, const PassageRule& rule,
                                          const StatsSettings& settings, const RoughSet& wanted) {
  constexpr int64_t kBlock = 4096;  // examples whose passages are in memory at a time
  std::vector<PassagePlace> places;
  for (int64_t first = 0; first < train.size(); first += kBlock) {
    const int64_t last = std::min(train.size(), first + kBlock);
    const Passages passages = passages_between(train, first, last, rule, settings);
    for (size_t i = 0; i < passages.size(); ++i) {
      const int64_t example = first + static_cast<int64_t>(i) / settings.num_towers;
      for (const uint64_t passage : passages[i]) {
        if (wanted.may_hold(passage)) places.push_back({passage, static_cast<int32_t>(example)});
      }
    }
  }
  std::ranges::sort(places);
  return places;
}

// The share of its passages that an example needs in common with one training example; passages of
// more than `most_sharers` training examples do not count.
struct Criterion {
  int64_t most_sharers;
  double least_share;
};

// The training examples that share so much.
std::set<int32_t> examples_with(const std::vector<uint64_t>& passages,
                                const std::vector<PassagePlace>& places,
                                const Criterion& criterion) {
  constexpr size_t kFewest = 8;
  std::vector<int32_t> sharers;
  size_t num_judged = 0;
  for (const uint64_t passage : passages) {
    const auto [first, last] =
        std::ranges::equal_range(places, passage, {}, &PassagePlace::passage);
    if (last - first > criterion.most_sharers) continue;
    ++num_judged;
    for (auto place = first; place != last; ++place) sharers.push_back(place->example);
  }
  std::set<int32_t> found;
  if (num_judged < kFewest) return found;
  std::ranges::sort(sharers);
  for (size_t begin = 0, end = 0; begin < sharers.size(); begin = end) {
    while (end < sharers.size() && sharers[end] == sharers[begin]) ++end;
    const double share = static_cast<double>(end - begin) / static_cast<double>(num_judged);
    if (share >= criterion.least_share) found.insert(sharers[begin]);
  }
  return found;
}

// True if all sequences of an example share passages with one and the same example.
bool overlaps(std::span<const std::vector<uint64_t>> sequences,
              const std::vector<PassagePlace>& places, const Criterion& criterion) {
  std::set<int32_t> found = examples_with(sequences[0], places, criterion);
  for (const std::vector<uint64_t>& passages : sequences.subspan(1)) {
    if (found.empty()) return false;
    const std::set<int32_t> others = examples_with(passages, places, criterion);
    std::erase_if(found, [&](int32_t example) { return !others.contains(example); });
  }
  return !found.empty();
}

}  // namespace

int64_t count_overlaps(const Dataset& dataset, const SplitStats& train, const SplitStats& test,
                       const StatsSettings& settings) {
  const Split train_split = dataset.split(train.name);
  const PassageRule rule = rule_of(train_split, settings, train.num_positions);
  const Split test_split = dataset.split(test.name);
  const Passages passages = passages_between(test_split, 0, test_split.size(), rule, settings);
  RoughSet wanted;
  for (const auto& sequence : passages) {
    for (const uint64_t passage : sequence) wanted.add(passage);
  }
  const std::vector<PassagePlace> places = places_in_train(train_split, rule, settings, wanted);
  const Criterion rare = {.most_sharers = 3, .least_share = 0.25};
  const Criterion frequent = {
      .most_sharers = std::min<int64_t>(100, std::max<int64_t>(10, train.size() / 4)),
      .least_share = 2.0 / 3};
  const auto towers = static_cast<size_t>(settings.num_towers);
  int64_t count = 0;
  for (size_t i = 0; i < test.examples.size(); ++i) {
    const auto sequences = std::span(passages).subspan(i * towers, towers);
    count += !test.examples[i].is_copy &&
             (overlaps(sequences, places, rare) || overlaps(sequences, places, frequent));
  }
  return count;
}

}  // namespace lra::checks
