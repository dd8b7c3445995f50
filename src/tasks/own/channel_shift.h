// Compares the values of each channel of a split with those of train.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/scaling.h"
#include "tasks/own/channel_tally.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {

// A split, and what its channels are like.
struct SplitValues {
  std::string name;
  Split split;
  std::vector<ChannelTally> tally;
  std::vector<ChannelScale> scales;

  static SplitValues of(const Dataset& dataset, const std::string& name,
                        const CustomConfig& config) {
    SplitValues values{.name = name, .split = dataset.split(name), .tally = {}, .scales = {}};
    values.tally = tally_channels(values.split, config);
    values.scales = scales_of(values.split, values.tally, config);
    return values;
  }
  int64_t size() const { return split.size(); }
};

// Two answers: whether channels of `other` are in another order, range or unit, or some of them
// have changed; and whether other values stay the same from one position to the next than in train.
// A sentence for each that is so.
std::vector<std::optional<std::string>> doubts_of_channels(const SplitValues& train,
                                                           const SplitValues& other,
                                                           const Scaling& scaling,
                                                           const CustomConfig& config);

}  // namespace lra::tasks
