// Statistics of the splits of a dataset, gathered in one pass over each split.
//
// Goal: whatever the checks (check_table.h) compare is counted here, once. No goal: to keep
// examples or to judge them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "checks/text_traits.h"
#include "data/dataset.h"

namespace lra::checks {

enum class InputKind {
  kText,    // bytes of UTF-8
  kTokens,  // ids, names of something
  kPixels,  // gray values from 0 to 255
  kValues,  // float32 numbers, in channels
};

// Count, mean and deviation of numbers that come one by one (Welford, 1962).
struct Spread {
  double count = 0, mean = 0, squares = 0;  // the sum of squared differences from the mean

  void add(double x) {
    const double apart = x - mean;
    mean += apart / ++count;
    squares += apart * (x - mean);
  }
  void merge(const Spread& other);
  double deviation() const { return count > 0 ? std::sqrt(squares / count) : 0; }
};

// The least of many values, how often it occurs, and the next one above it.
struct LeastValue {
  double value = std::numeric_limits<double>::infinity(), next = value;
  int64_t count = 0;

  void add(double x, int64_t times = 1);
  void merge(const LeastValue& other);
};

// The numbers of one channel. The mean and the deviation of an example count once each.
struct ChannelStats {
  Spread means;
  Spread log_deviations;       // of the examples that vary
  double variances = 0;        // of examples around their means, summed
  LeastValue lowest, highest;  // the second of the negated values
  int64_t count = 0;           // of values
  static constexpr size_t kFewValues = 10;
  std::set<double> different;  // values, at most kFewValues of them

  void add_example(const std::vector<double>& values);
  void merge(const ChannelStats& other);
  bool is_constant() const { return lowest.value == -highest.value; }
  bool has_few_values() const { return different.size() < kFewValues; }
  // Deviation of all values around their mean.
  double deviation() const {
    return std::hypot(means.deviation(), std::sqrt(variances / means.count));
  }
};

// Mean squared differences of values that are one position, one channel, and half of all channels
// apart, summed over examples.
struct AxisStats {
  double positions = 0, channels = 0, far_channels = 0;
  double count = 0;  // of examples
};

// A token id of a split.
struct IdStats {
  int64_t count = 0;
  int64_t example = -1;  // the only one that has it; kSeveral for more
  static constexpr int64_t kSeveral = -2;

  void merge(const IdStats& other);  // of other examples
};

struct ExampleStats {
  Hash128 exact;   // of its sequences, in their order
  Hash128 folded;  // the same, but of folded() texts
  int32_t label = 0;
  bool is_telling = false;  // too long to equal another by chance, and not one value only
  bool is_copy = false;     // of an example of an earlier split; filled by relate()
};

// Runs of one position, eight or more times in a row: sequences that have one, by the hash of the
// position.
struct RunStats {
  std::unordered_map<uint64_t, int64_t> whole;  // nothing but this run
  std::unordered_map<uint64_t, int64_t> inside;
  // At the end, with the position nowhere else and no other run at the begin.
  std::unordered_map<uint64_t, int64_t> ends;
};

inline constexpr size_t kFewestChannels = 8;  // of an example whose axes may be exchanged

struct SplitStats {
  std::string name;
  std::vector<std::string> files;  // hashes of its shards
  std::vector<ExampleStats> examples;
  std::vector<int64_t> classes;  // examples of each
  Spread lengths;
  std::vector<ChannelStats> channels;  // one of pixels and bytes; none of tokens
  AxisStats axes;
  std::unordered_map<int32_t, IdStats> ids;          // by id; empty unless tokens
  std::unordered_map<int32_t, int64_t> first, last;  // ids at both ends; empty unless tokens
  RunStats runs;                                     // empty if texts
  int64_t num_sequences = 0;
  int64_t shortest = INT64_MAX, longest = 0;               // of a sequence
  int64_t num_positions = 0, num_cut = 0;                  // and those behind the task's length
  int64_t num_empty = 0;                                   // examples
  std::vector<std::array<int64_t, kNumTextTraits>> texts;  // sequences with a trait, by class
  // Filled by relate(); the last one, of the test, by run() (check_table.h).
  std::string same_file_as;  // an earlier split that has one of its files
  int64_t num_copies = 0, num_repeats = 0, num_contradictions = 0, num_overlaps = 0;

  auto size() const { return static_cast<int64_t>(examples.size()); }
  // Counts the positions of a sequence, and those behind the `read` ones that the task reads.
  void add_length(int64_t length, int64_t read) {
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
    num_positions += length;
    num_cut += std::max<int64_t>(0, length - read);
  }
  bool exceeds(int64_t count, double share) const {
    return static_cast<double>(count) > share * static_cast<double>(size());
  }
};

// Facts about a task that its statistics need.
struct StatsSettings {
  InputKind input = InputKind::kTokens;
  int64_t num_classes = 2, num_towers = 1;
  int64_t length = 0;  // of a sequence as the task reads it
};

// The statistics of one split. The same at any number of threads.
SplitStats split_stats(const Dataset& dataset, const std::string& name,
                       const StatsSettings& settings);

// The same, of nothing but lengths: add_length().
SplitStats length_stats(const Dataset& dataset, const std::string& name,
                        const StatsSettings& settings);

// Counts what splits have in common, in the order train, val, test: copies of an example of an
// earlier split and repeats of one of the same split, texts whatever their case and white space,
// and examples that occur with two labels, exactly. Examples of one value only, or shorter than
// 16 tokens or 100 bytes of text, are equal by chance, and do not count.
void relate(std::vector<SplitStats>& splits);

}  // namespace lra::checks
