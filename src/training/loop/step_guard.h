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

enum class Remedy { kStop, kSkip, kRollBack };

class StepGuard {
 public:
  explicit StepGuard(const TrainConfig& config) : config_(config) {}

  // The fault of a step with this mean loss and gradient norm ("the loss is not finite"); empty if
  // there is none. A gradient whose square overflows float32 counts as not finite: Adam's second
  // moment would become infinite and the weights would never move again.
  std::string fault(double loss, double gradient_norm, const Health& health) const;

  // Counts a step that went well.
  void passed(double loss, double gradient_norm, Health& health) const;

  // Decides what to do about a bad step, and counts it. Returns kStop, without counting, once the
  // policy's limit is reached.
  Remedy remedy(Health& health) const;

 private:
  const TrainConfig config_;
};

}  // namespace lra::training
