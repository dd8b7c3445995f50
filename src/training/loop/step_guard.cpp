#include "training/loop/step_guard.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text_format.h"

namespace lra::training {
namespace {

// Number of steps that a running mean covers, roughly, and after which spikes are looked for.
constexpr int64_t kMeanSteps = 50;

// The plain mean at first, later one that forgets.
void add_to_mean(double& mean, double value, int64_t count) {
  mean += (value - mean) / static_cast<double>(std::min(count, kMeanSteps));
}

}  // namespace

std::string fault_of(const TrainConfig& config, double loss, double gradient_norm,
                     const Health& health) {
  if (!std::isfinite(loss)) return "the loss is not finite";
  const double most = config.clip_norm,
               applied = most > 0 ? std::min(gradient_norm, most) : gradient_norm;
  if (!std::isfinite(gradient_norm) || applied * applied > std::numeric_limits<float>::max()) {
    return "the gradient is not finite";
  }
  if (config.spike_factor == 0 || health.num_good < kMeanSteps) return "";
  const auto spike = [&](const char* what, double value, double mean) {
    if (value <= config.spike_factor * mean) return std::string();
    return std::string(what) + " is " + fixed(value / mean, 1) + " times its running mean";
  };
  const std::string of_loss = spike("the loss", loss, health.mean_loss);
  return of_loss.empty() ? spike("the gradient norm", gradient_norm, health.mean_norm) : of_loss;
}

void count_good_step(const TrainConfig& config, double loss, double gradient_norm, Health& health) {
  health.skipped_in_a_row = 0;
  if (config.spike_factor == 0) return;
  ++health.num_good;
  add_to_mean(health.mean_loss, loss, health.num_good);
  add_to_mean(health.mean_norm, gradient_norm, health.num_good);
}

Remedy remedy_for(const TrainConfig& config, Health& health) {
  if (config.on_nonfinite == "skip" && health.skipped_in_a_row < config.max_skips) {
    ++health.skipped;
    ++health.skipped_in_a_row;
    return Remedy::kSkip;
  }
  if (config.on_nonfinite == "roll_back" && health.roll_backs < config.max_roll_backs) {
    ++health.roll_backs;
    return Remedy::kRollBack;
  }
  return Remedy::kStop;
}

}  // namespace lra::training
