#include "analysis/efficiency.h"

#include <cmath>
#include <functional>
#include <optional>

#include "analysis/flop_count.h"
#include "analysis/gemm_speed.h"
#include "analysis/wait_for.h"
#include "base/clock.h"
#include "base/resources.h"
#include "base/rng.h"
#include "models/classifier.h"
#include "tasks/prepare_data.h"
#include "training/loop/batches.h"
#include "training/loop/stepper.h"
#include "training/ranks/flat_parameters.h"
#include "training/run/make_model.h"
#include "training/run/tensor_memory.h"

namespace lra::analysis {
namespace {

models::ModelInput random_input(const TaskShape& shape, int64_t batch) {
  const int64_t rows = batch * shape.num_towers;
  RandomStream stream(derive_key(0, RandomUse::kAnalysis));
  if (shape.values && shape.values->stored_as_float) {
    const at::Tensor values_BLC = at::empty({rows, shape.length, shape.values->channels});
    auto* values = values_BLC.mutable_data_ptr<float>();
    for (int64_t i = 0; i < values_BLC.numel(); ++i)
      values[i] = static_cast<float>(stream.normal());
    return {.values_BLC = values_BLC};
  }
  const at::Tensor tokens_BL = at::empty({rows, shape.length}, at::kInt);
  auto* ids = tokens_BL.mutable_data_ptr<int32_t>();
  for (int64_t i = 0; i < tokens_BL.numel(); ++i) {
    ids[i] = static_cast<int32_t>(1 + stream.below(static_cast<uint32_t>(shape.vocabulary - 1)));
  }
  return training::input_of(tokens_BL, {}, shape);
}

// The model, its training state, and one step of either mode.
class Bench {
 public:
  Bench(const training::RunConfig& run, const TaskShape& shape, const EfficiencyOptions& options)
      : model_(training::make_model(run, shape, options.device)) {
    if (!options.train) return;  // inference has no gradients and moments
    parameters_.emplace(model_);
    stepper_.emplace(model_, *parameters_, run.train, run.seed, training::one_rank(), run.groups);
  }

  void step(const training::Batch& batch) {
    if (!stepper_) {
      const at::NoGradGuard no_grad;
      (void)model_.forward(training::to_device(batch, model_.device()).input, {});
      wait_for(model_.device());
      return;
    }
    const training::StepLoss loss = stepper_->step(std::span(&batch, 1), step_, step_);
    LRA_CHECK(std::isfinite(loss.gradient_norm) && loss.weights_are_finite);
    ++step_;
  }

  const models::SequenceClassifier& model() const { return model_; }

 private:
  models::SequenceClassifier model_;
  std::optional<training::FlatParameters> parameters_;
  std::optional<training::Stepper> stepper_;
  int64_t step_ = 0;
};

training::Batch random_batch(const TaskShape& shape, int64_t batch, at::Device device) {
  return training::to_device({.input = random_input(shape, batch),
                              .labels_B = at::zeros({batch}, at::kLong),
                              .num_tokens = batch * shape.num_towers * shape.length},
                             device);
}

// Batches of `sequences` training examples of the task's data.
training::BatchLoader batches_of(const training::RunConfig& run, const EfficiencyOptions& options,
                                 int64_t sequences, const training::LoaderSettings& settings) {
  const auto task = run.make_task();
  const Split split = run.split_of(
      *task, tasks::prepare_data(run.task_spec(), *task, *options.data_root, true), "train");
  return {split, task->shape(), BatchOrder(split.size(), sequences, run.seed), 0, settings};
}

// True if a step takes longer than five windows.
bool is_long(const EfficiencyOptions& options, double step_seconds) {
  return step_seconds > 5 * options.window_seconds;
}

// Seconds of the last step, 0 without any. The first finds nothing warm: where it is barely long, a
// second one decides.
double warm_up(const EfficiencyOptions& options, const std::function<void()>& step) {
  const auto seconds_of_step = [&] {
    const Stopwatch watch;
    step();
    return watch.seconds();
  };
  double seconds = 0;
  for (int64_t i = 0; i < options.warmup_steps; ++i) seconds = seconds_of_step();
  const bool barely_long = is_long(options, seconds) && !is_long(options, seconds / 2);
  return barely_long ? seconds_of_step() : seconds;
}

std::string mode_of(const EfficiencyOptions& options) {
  return std::string(options.train ? "train" : "infer") + (options.real_batch ? " on data" : "");
}

// One sequence of random tokens is enough; in a real batch the padding that is computed counts.
int64_t batch_flops(const models::SequenceClassifier& model, const TaskShape& shape,
                    const training::Batch& batch, const EfficiencyOptions& options) {
  if (options.real_batch) return forward_flops(model, batch.input);
  return options.batch * forward_flops(model, random_batch(shape, 1, options.device).input);
}

// A long step is timed in parts: five windows of a minute and a half each, for every model and
// length, would take hours without telling more. A part is large enough for its cost per sequence
// to be that of the whole.
int64_t parts_of_step(const EfficiencyOptions& options, double step_seconds) {
  constexpr int64_t kLeastSequences = 4, kMostParts = 8;
  if (options.whole_steps || options.real_batch) return 1;
  int64_t parts = 1;
  while (is_long(options, step_seconds / static_cast<double>(parts)) && parts < kMostParts &&
         options.batch % (2 * parts) == 0 && options.batch / (2 * parts) >= kLeastSequences) {
    parts *= 2;
  }
  return parts;
}

// Median number of steps per second, with batches of `sequences` training examples of the task,
// none of them trimmed.
double pipeline_speed(const training::RunConfig& run, const EfficiencyOptions& options,
                      int64_t sequences, Bench& bench) {
  training::BatchLoader loader = batches_of(run, options, sequences,
                                            {.trim = false,
                                             .prefetch = std::max<int64_t>(1, run.train.prefetch),
                                             .threads = run.train.loader_threads});
  bench.step(loader.next().at(0));
  return timed_windows([&] { bench.step(loader.next().at(0)); }, options.windows,
                       options.window_seconds)
      .median();
}

}  // namespace

Measurement measure(const training::RunConfig& run, const EfficiencyOptions& options) {
  std::optional<training::TensorMemory> memory(std::in_place, options.device);
  const TaskShape shape = run.make_task()->shape();
  Bench bench(run, shape, options);
  const auto batch_of = [&](int64_t sequences) {
    if (!options.real_batch) return random_batch(shape, sequences, options.device);
    return training::to_device(
        batches_of(run, options, sequences, {.trim = run.train.trim_padding}).next().at(0),
        options.device);
  };
  const training::Batch batch = batch_of(options.batch);
  const double step_seconds = warm_up(options, [&] { bench.step(batch); });
  // Counting ends before anything is timed.
  const int64_t peak_tensor_bytes = memory->peak_bytes();
  memory.reset();
  const int64_t parts = parts_of_step(options, step_seconds), sequences = options.batch / parts;
  const double part = 1 / static_cast<double>(parts);
  const training::Batch timed = parts == 1 ? batch : batch_of(sequences);
  const WindowHooks of_whole_steps{
      .before = options.hooks.before,
      .after = [&](double steps_per_s) { options.hooks.after(steps_per_s * part); }};
  const TimedWindows windows = timed_windows([&] { bench.step(timed); }, options.windows,
                                             options.window_seconds, of_whole_steps);
  Measurement m{.mode = mode_of(options),
                .dtype = run.train.precision,
                .length = shape.length,
                .batch = options.batch,
                .steps_per_s = windows.median() * part,
                .tokens_per_s = windows.median() * static_cast<double>(timed.num_tokens),
                .slowest_steps_per_s = windows.slowest() * part,
                .fastest_steps_per_s = windows.fastest() * part,
                .windows = options.windows,
                .peak_resident_bytes = peak_resident_bytes(),
                .peak_tensor_bytes = peak_tensor_bytes,
                .warning = windows.warning(),
                .examples_per_s = windows.median() * static_cast<double>(sequences)};
  m.model_flops = (options.train ? 3 : 1) * batch_flops(bench.model(), shape, batch, options);
  m.gemm_flops_per_s = gemm_flops_per_s(run.train.precision == "bf16", options.device);
  if (options.real_batch) {
    m.computed_tokens_per_s =
        windows.median() * static_cast<double>(bench.model().num_positions(timed.input));
  } else if (options.data_root) {
    m.pipeline_steps_per_s = part * pipeline_speed(run, options, sequences, bench);
  }
  if (parts > 1) m.parts = parts;
  return m;
}

}  // namespace lra::analysis
