#include "analysis/efficiency.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/resources.h"
#include "base/rng.h"
#include "models/classifier.h"
#include "training/flat_parameters.h"
#include "training/stepper.h"
#include "training/tensor_memory.h"

namespace lra::analysis {
namespace {

models::TokenBatch random_tokens(const TaskShape& shape, int64_t batch) {
  models::TokenBatch tokens{at::empty({batch * shape.num_towers, shape.length}, at::kInt), {}};
  RandomStream stream(derive_key(0, RandomUse::kAnalysis));
  auto* ids = tokens.tokens_BL.mutable_data_ptr<int32_t>();
  for (int64_t i = 0; i < tokens.tokens_BL.numel(); ++i) {
    ids[i] = static_cast<int32_t>(1 + stream.below(static_cast<uint32_t>(shape.vocabulary - 1)));
  }
  return tokens;
}

// Steps per second in each window.
std::vector<double> timed_windows(const std::function<void()>& step,
                                  const EfficiencyOptions& options) {
  std::vector<double> rates;
  for (int64_t w = 0; w < options.windows; ++w) {
    const Stopwatch watch;
    int64_t steps = 0;
    do {
      step();
      ++steps;
    } while (watch.seconds() < options.window_seconds);
    rates.push_back(static_cast<double>(steps) / watch.seconds());
  }
  return rates;
}

}  // namespace

Measurement measure(const training::RunConfig& run, const EfficiencyOptions& options) {
  std::optional<training::TensorMemory> memory(std::in_place);
  const TaskShape shape = run.make_task()->shape();
  models::SequenceClassifier model = run.make_model(shape);
  // Inference has no gradients and moments.
  std::optional<training::FlatParameters> parameters;
  if (options.train) parameters.emplace(model.parameter_list());
  const training::Batch batch{.input = random_tokens(shape, options.batch),
                              .labels_B = at::zeros({options.batch}, at::kLong),
                              .num_tokens = options.batch * shape.num_towers * shape.length};
  std::optional<training::Stepper> stepper;
  if (options.train) stepper.emplace(model, *parameters, run.train, run.seed);
  int64_t step = 0;
  const auto train_step = [&] {
    const training::StepLoss loss = stepper->gradients(std::span(&batch, 1), step);
    LRA_CHECK(std::isfinite(loss.gradient_norm));
    stepper->update(step, step, loss.gradient_norm);
    LRA_CHECK(stepper->weights_are_finite());
    ++step;
  };
  const auto infer_step = [&] {
    const torch::NoGradGuard no_grad;
    (void)model.forward(batch.input, {});
  };
  const std::function<void()> one_step =
      options.train ? std::function<void()>(train_step) : infer_step;
  for (int64_t i = 0; i < options.warmup_steps; ++i) one_step();
  // Counting ends before anything is timed.
  const int64_t peak_tensor_bytes = memory->peak_bytes();
  memory.reset();
  std::vector<double> rates = timed_windows(one_step, options);
  std::sort(rates.begin(), rates.end());
  const size_t middle = rates.size() / 2;
  const double median =
      rates.size() % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2;
  return {.mode = options.train ? "train" : "infer",
          .dtype = run.train.precision,
          .length = shape.length,
          .batch = options.batch,
          .steps_per_s = median,
          .tokens_per_s = median * static_cast<double>(batch.num_tokens),
          .slowest_steps_per_s = rates.front(),
          .fastest_steps_per_s = rates.back(),
          .windows = options.windows,
          .peak_resident_bytes = peak_resident_bytes(),
          .peak_tensor_bytes = peak_tensor_bytes};
}

}  // namespace lra::analysis
