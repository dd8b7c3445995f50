// Counts, sums and extremes of the values of each channel of a split.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// The least of many values, how often it occurs, and the next one above it.
struct LeastValue {
  double value = std::numeric_limits<double>::infinity(), next = value;
  int64_t count = 0;

  void add(double x) {
    if (x < value) {
      next = value;
      value = x;
      count = 0;
    }
    if (x > value) next = std::min(next, x);
    count += x == value;
  }
};

// Values of one channel.
struct ChannelTally {
  double count = 0, repeats = 0, sum = 0, squares = 0;
  LeastValue lowest, highest;  // the second of the negated values

  void add(double x) {
    ++count;
    sum += x;
    squares += x * x;
    lowest.add(x);
    highest.add(-x);
  }
  bool varies() const { return lowest.value < -highest.value; }
  double mean() const { return sum / count; }
  // Root of the mean square of the differences from `center`.
  double deviation_from(double center) const {
    return std::sqrt(std::max(0.0, squares / count - 2 * center * mean() + center * center));
  }
};

std::vector<ChannelTally> tally_channels(const Split& split, const CustomConfig& config);

// The value that marks what is missing, as -999 does: the lowest or the highest value if it is far
// from all others, and occurs too often for an outlier and too rarely for the usual value of a
// channel of rare events. Null if there is none.
const LeastValue* mark_of(const ChannelTally& channel);

// The sentence about such a value. `channel` may be empty.
std::string doubt_of_mark(const ChannelTally& tally, const std::string& split,
                          const std::string& channel);

// " in channel 3"; nothing if there is only one.
std::string of_channel(size_t channel, int64_t num_channels);

// "1, 2, 3", and " ..." after the sixth.
std::string listed(const std::vector<size_t>& numbers);

// The mean of a channel and its standard error, and the deviation around it with its standard error
// as a share of it. An example counts as one observation: its positions are alike.
struct ChannelScale {
  double mean = 0, mean_error = 0, deviation = 0, relative_error = 0;
};

std::vector<ChannelScale> scales_of(const Split& split, const std::vector<ChannelTally>& tally,
                                    const CustomConfig& config);

}  // namespace lra::tasks
