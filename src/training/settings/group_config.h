// Settings of a group of parameters: those that a sequence layer asks its own rate or decay for.
#pragma once

#include <map>
#include <string>

#include "mixers/layer_spec.h"
#include "training/settings/train_config.h"

namespace lra::training {

struct GroupConfig {
  double learning_rate = 0, rate_factor = 1, weight_decay = 0;
  std::string schedule = "train";

  void fields(auto& f) {
    f("learning_rate", learning_rate, "learning rate of the group; 0: train.learning_rate",
      at_least(0));
    f("rate_factor", rate_factor, "multiplies the learning rate", at_least(0));
    f("weight_decay", weight_decay, "weight decay of the group, instead of train.weight_decay",
      at_least(0));
    f("schedule", schedule, "schedule of the group; train: train.schedule",
      one_of({"train", "rsqrt", "cosine", "constant"}));
  }
};

// Settings by the name of the group. The main one, "", has the settings of [train].
using GroupConfigs = std::map<std::string, GroupConfig>;

// The sequence layer's defaults for settings that a run does not give.
inline GroupConfig group_defaults(const mixers::GroupSpec& spec) {
  return {.learning_rate = spec.learning_rate, .weight_decay = spec.weight_decay};
}

// The settings that a group trains with.
inline TrainConfig of_group(TrainConfig train, const GroupConfig& group) {
  if (group.learning_rate > 0) train.learning_rate = group.learning_rate;
  train.learning_rate *= group.rate_factor;
  train.weight_decay = group.weight_decay;
  if (group.schedule != "train") train.schedule = group.schedule;
  return train;
}

}  // namespace lra::training
