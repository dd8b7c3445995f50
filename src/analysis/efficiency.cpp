#include "analysis/efficiency.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "analysis/tensor_memory.h"
#include "base/clock.h"
#include "base/resources.h"
#include "base/rng.h"
#include "models/classifier.h"
#include "ops/adam.h"
#include "training/flat_parameters.h"
#include "training/schedule.h"

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
  std::optional<TensorMemory> memory(std::in_place);
  const TaskShape shape = run.make_task()->shape();
  models::SequenceClassifier model = run.make_model(shape);
  // Inference has no gradients and moments.
  std::optional<training::FlatParameters> parameters;
  if (options.train) parameters.emplace(model.parameter_list());
  const models::TokenBatch tokens = random_tokens(shape, options.batch);
  const at::Tensor labels = at::zeros({options.batch}, at::kLong);
  const training::TrainConfig& t = run.train;
  int64_t step = 0;
  const auto train_step = [&] {
    parameters->zero_gradients();
    const models::StepRandom random{.training = true, .seed = run.seed, .step = step};
    at::cross_entropy_loss(model.forward(tokens, random), labels).backward();
    LRA_CHECK(std::isfinite(ops::gradient_norm(parameters->gradients)));
    ops::adam_step(parameters->values, parameters->gradients, parameters->m, parameters->v,
                   {training::learning_rate(t, step), t.beta1, t.beta2, t.eps, t.weight_decay},
                   step, 1);
    ++step;
  };
  const auto infer_step = [&] {
    const torch::NoGradGuard no_grad;
    (void)model.forward(tokens, {});
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
          .tokens_per_s = median * static_cast<double>(tokens.tokens_BL.numel()),
          .slowest_steps_per_s = rates.front(),
          .fastest_steps_per_s = rates.back(),
          .windows = options.windows,
          .peak_resident_bytes = peak_resident_bytes(),
          .peak_tensor_bytes = peak_tensor_bytes};
}

}  // namespace lra::analysis
