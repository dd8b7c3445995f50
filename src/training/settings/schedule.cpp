#include "training/settings/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lra::training {

double learning_rate(const TrainConfig& config, int64_t step) {
  const auto at = static_cast<double>(step), warmup = static_cast<double>(config.warmup_steps);
  const double ramp = warmup > 0 ? std::min(1.0, at / warmup) : 1.0;
  if (config.schedule == "constant") return config.learning_rate * ramp;
  if (config.schedule == "rsqrt") {
    return config.learning_rate * ramp / std::sqrt(std::max({at, warmup, 1.0}));
  }
  LRA_CHECK_EQ(config.schedule, std::string("cosine"));
  const auto cycle =
      static_cast<double>(config.cycle_steps > 0 ? config.cycle_steps : config.steps);
  const double progress = std::max(0.0, at - warmup) / cycle;
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * (progress - std::floor(progress))));
  return config.learning_rate * ramp * std::max(0.0, wave);
}

}  // namespace lra::training
