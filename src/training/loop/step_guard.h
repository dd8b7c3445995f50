// Detects bad steps and decides what to do about them (train.on_nonfinite, train.spike_factor).
#pragma once

#include <cstdint>
#include <string>

#include "training/settings/train_config.h"

namespace lra::training {

// Memory of bad steps from step to step. All zero as long as none was bad and no spikes are looked
// for; part of every checkpoint otherwise.
struct Health {
  int64_t skipped = 0, skipped_in_a_row = 0;
  int64_t roll_backs = 0, undone = 0;   // `undone`: steps that roll-backs left out
  double mean_loss = 0, mean_norm = 0;  // running means of good steps, for spikes
  int64_t num_good = 0;                 // steps in them
  bool operator==(const Health&) const = default;
};

// The fault of a step with this mean loss and gradient norm ("the loss is not finite"); empty if
// there is none. A gradient whose square overflows float32 counts as not finite: Adam's second
// moment would become infinite and the weights would never move again.
std::string fault_of(const TrainConfig& config, double loss, double gradient_norm,
                     const Health& health);

// Counts a step that went well.
void count_good_step(const TrainConfig& config, double loss, double gradient_norm, Health& health);

// Decides what to do about a bad step, and counts it. Returns kStop, without counting, once the
// policy's limit is reached.
enum class Remedy { kStop, kSkip, kRollBack };
Remedy remedy_for(const TrainConfig& config, Health& health);

}  // namespace lra::training
