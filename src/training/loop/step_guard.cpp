#include "training/loop/step_guard.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text_format.h"

namespace lra::training {
namespace {

// Number of steps that a running mean covers, roughly, and after which spikes are looked for.
constexpr int64_t kMeanSteps = 50;

Remedy policy_of(const std::string& name) {
  if (name == "skip") return Remedy::kSkip;
  if (name == "roll_back") return Remedy::kRollBack;
  LRA_CHECK_EQ(name, std::string("stop"));
  return Remedy::kStop;
}

// The plain mean at first, later one that forgets.
void add_to_mean(double& mean, double value, int64_t count) {
  mean += (value - mean) / static_cast<double>(std::min(count, kMeanSteps));
}

}  // namespace

StepGuard::StepGuard(const TrainConfig& config)
    : policy_(policy_of(config.on_nonfinite)),
      spike_factor_(config.spike_factor),
      clip_norm_(config.clip_norm),
      max_skips_(config.max_skips),
      max_roll_backs_(config.max_roll_backs) {}

std::string StepGuard::fault(double loss, double gradient_norm, const Health& health) const {
  if (!std::isfinite(loss)) return "the loss is not finite";
  const double applied = clip_norm_ > 0 ? std::min(gradient_norm, clip_norm_) : gradient_norm;
  if (!std::isfinite(gradient_norm) || applied * applied > std::numeric_limits<float>::max()) {
    return "the gradient is not finite";
  }
  if (spike_factor_ == 0 || health.num_good < kMeanSteps) return "";
  const auto spike = [&](const char* what, double value, double mean) {
    if (value <= spike_factor_ * mean) return std::string();
    return std::string(what) + " is " + fixed(value / mean, 1) + " times its running mean";
  };
  const std::string of_loss = spike("the loss", loss, health.mean_loss);
  return of_loss.empty() ? spike("the gradient norm", gradient_norm, health.mean_norm) : of_loss;
}

void StepGuard::passed(double loss, double gradient_norm, Health& health) const {
  health.skipped_in_a_row = 0;
  if (spike_factor_ == 0) return;
  ++health.num_good;
  add_to_mean(health.mean_loss, loss, health.num_good);
  add_to_mean(health.mean_norm, gradient_norm, health.num_good);
}

Remedy StepGuard::remedy(Health& health) const {
  if (policy_ == Remedy::kSkip && health.skipped_in_a_row < max_skips_) {
    ++health.skipped;
    ++health.skipped_in_a_row;
    return Remedy::kSkip;
  }
  if (policy_ == Remedy::kRollBack && health.roll_backs < max_roll_backs_) {
    ++health.roll_backs;
    return Remedy::kRollBack;
  }
  return Remedy::kStop;
}

}  // namespace lra::training
