#include "training/settings/budget.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numbers>
#include <sstream>

#include "base/error.h"
#include "base/text_format.h"

namespace lra::training {
namespace {
constexpr int64_t kMaxSteps = 1'000'000'000;
// "0.0035", "2e-05".
std::string short_number(double value) {
  std::ostringstream text;
  text << std::setprecision(2) << value;
  return text.str();
}
constexpr const char* kTimeWas = "train.max_seconds, ";
}  // namespace

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

void check_train_config(const TrainConfig& config) {
  if (config.accumulate > config.batch_size) {
    throw Error({.where = "train.accumulate",
                 .what = std::to_string(config.accumulate) + " micro-batches of " +
                         std::to_string(config.batch_size) + " examples",
                 .expected = "at most train.batch_size",
                 .advice = "set train.accumulate or train.batch_size"});
  }
  if (config.epochs > 0 && config.examples > 0) {
    throw Error({.where = "train.epochs",
                 .what = "is set, and so is train.examples",
                 .expected = "one of them",
                 .advice = "set the other to 0"});
  }
  if (config.spike_factor > 0 && config.spike_factor <= 1) {
    throw Error({.where = "train.spike_factor",
                 .what = "is " + fixed(config.spike_factor, 3) + ", which makes every step a spike",
                 .expected = "more than 1, or 0 for none"});
  }
}

void refuse_two_lengths(int64_t steps_before, const TrainConfig& train) {
  if ((train.epochs == 0 && train.examples == 0) || train.steps == steps_before) return;
  const std::string other = train.epochs > 0 ? "train.epochs" : "train.examples";
  throw Error({.where = "train.steps",
               .what = "is set, and " + other + " decides the number of steps",
               .expected = "one of them",
               .advice = "leave it out, or set " + other + "=0"});
}

int64_t planned_steps(const TrainConfig& config, int64_t num_examples) {
  if (config.epochs == 0 && config.examples == 0) return config.steps;
  const double examples = config.epochs > 0 ? config.epochs * static_cast<double>(num_examples)
                                            : static_cast<double>(config.examples);
  const double steps = std::ceil(examples / static_cast<double>(config.batch_size));
  if (steps <= kMaxSteps) return std::max<int64_t>(1, static_cast<int64_t>(steps));
  throw Error({.where = config.epochs > 0 ? "train.epochs" : "train.examples",
               .what = "takes more than " + thousands(kMaxSteps) + " steps",
               .advice = "set it lower, or train.batch_size higher"});
}

std::vector<std::string> schedule_warnings(const TrainConfig& config) {
  std::vector<std::string> warnings;
  if (config.learning_rate == 0) {
    warnings.push_back("nothing is learned: train.learning_rate is 0");
  }
  if (config.warmup_steps >= config.steps) {
    warnings.push_back("the learning rate never leaves warm-up: train.warmup_steps is " +
                       thousands(config.warmup_steps) + ", and training takes " +
                       thousands(config.steps) + " steps");
  }
  const int64_t end = config.warmup_steps + config.cycle_steps;
  if (config.schedule == "cosine" && config.cycle_steps > 0 && end < config.steps) {
    warnings.push_back("the schedule ends before training does: after step " + thousands(end) +
                       " of " + thousands(config.steps) +
                       " the cosine begins again at the full rate (train.cycle_steps)");
  }
  return warnings;
}

std::string rate_jump(const TrainConfig& before, const TrainConfig& now, int64_t step) {
  constexpr double kLeast = 0.1;
  const double last = learning_rate(before, std::max<int64_t>(0, step - 1)),
               next = learning_rate(now, step);
  if (std::abs(next - last) <= kLeast * std::max(last, next)) return "";
  std::string text = std::string("the learning rate ") + (next > last ? "rises" : "falls") +
                     " from " + short_number(last) + " to " + short_number(next) + " after step " +
                     thousands(step);
  if (now.schedule != "cosine") return text;
  const int64_t span = now.cycle_steps > 0 ? now.cycle_steps : now.steps;
  return text + ": the cosine now spans " + thousands(span) + " steps";
}

std::string early_end(const TrainConfig& config, const TrainProgress& progress, double seconds) {
  if (config.max_seconds > 0 && progress.step > 0 && seconds >= config.max_seconds) {
    return kTimeWas + human_duration(config.max_seconds) + ", were over";
  }
  // Validations come every eval_every steps, so steps without a better one count them.
  const int64_t worse = progress.last_eval_step - progress.best_step;
  if (config.patience > 0 && progress.best_step > 0 &&
      worse >= config.patience * config.eval_every) {
    return "no better validation in " + std::to_string(config.patience) + " (train.patience)";
  }
  return "";
}

bool is_end_by_time(const std::string& why) { return why.starts_with(kTimeWas); }

int64_t last_scheduled_checkpoint(const TrainConfig& config, int64_t step) {
  const auto last_multiple = [&](int64_t every) { return every > 0 ? step / every * every : 0; };
  return std::max(last_multiple(config.eval_every), last_multiple(config.checkpoint_every));
}

}  // namespace lra::training
