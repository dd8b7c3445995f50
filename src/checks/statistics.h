// Statistics of the splits of a dataset, gathered in one pass over each split.
//
// Goal: whatever the checks (check_table.h) compare is counted here, once. No goal: to keep
// examples or to judge them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
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
  Spread means, deviations;
  LeastValue lowest, highest;  // the second of the negated values
  int64_t count = 0;           // of values

  void add_example(const std::vector<double>& values);
  void merge(const ChannelStats& other);
  bool is_constant() const { return lowest.value == -highest.value; }
  // Deviation of all values around their mean.
  double deviation() const { return std::hypot(means.deviation(), deviations.mean); }
};

// Mean squared differences of values that are one position, one channel, and half of all channels
// apart, summed over examples.
struct AxisStats {
  double positions = 0, channels = 0, far_channels = 0;
  double count = 0;  // of examples
};

// Token ids of a split.
struct IdStats {
  int64_t count = 0;
  int64_t example = -1;  // the only one that has it; kSeveral for more
  static constexpr int64_t kSeveral = -2;
};

struct ExampleStats {
  Hash128 content;  // of its sequences, in any order
  int32_t label = 0;
  bool is_long = false;  // too long to equal another by chance
};

struct SplitStats {
  std::string name;
  std::vector<std::string> files;  // hashes of its shards
  std::vector<ExampleStats> examples;
  std::vector<int64_t> classes;  // examples of each
  Spread lengths;
  std::vector<ChannelStats> channels;  // one of pixels and bytes; none of tokens
  AxisStats axes;
  std::vector<IdStats> ids;                            // by id; empty unless tokens
  std::unordered_map<int32_t, int64_t> first, last;    // ids at both ends; empty unless tokens
  std::unordered_map<uint64_t, int64_t> begins, ends;  // runs of one position, by its hash
  int64_t num_sequences = 0;
  int64_t shortest = INT64_MAX, longest = 0;               // of a sequence
  int64_t num_positions = 0, num_cut = 0;                  // and those behind the task's length
  int64_t num_empty = 0, num_constant = 0;                 // examples
  std::vector<std::array<int64_t, kNumTextTraits>> texts;  // sequences with a trait, by class
  // Filled by relate(); the last one by count_overlaps() (overlap.h).
  std::string same_file_as;  // an earlier split that has one of its files
  int64_t num_copies = 0, num_repeats = 0, num_contradictions = 0, num_overlaps = 0;

  auto size() const { return static_cast<int64_t>(examples.size()); }
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

// The same, of nothing but lengths: longest, num_positions and num_cut.
SplitStats length_stats(const Dataset& dataset, const std::string& name,
                        const StatsSettings& settings);

// Counts what splits have in common, in the order train, val, test: copies of an example of an
// earlier split, repeats of one of the same split, and examples that occur with two labels.
// Examples shorter than 16 tokens are equal by chance, and do not count.
void relate(std::vector<SplitStats>& splits);

}  // namespace lra::checks
