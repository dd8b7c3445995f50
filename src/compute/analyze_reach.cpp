// lra analyze reach: gradients by distance, and the score with layers in windows.
#include "analysis/adapted_model.h"
#include "analysis/reach.h"
#include "base/stop_flag.h"
#include "compute/analyses.h"
#include "training/loop/batches.h"

namespace lra::cli {
namespace {

using training::LoadedRun;

const std::vector<int64_t> kWindows = {4, 16, 64, 256};  // where --fields is not given

// Adds the score with the layer of this number in windows, or with all of them. Returns false when
// a stop was requested.
bool add_in_windows(const LoadedRun& run, ChangedInputs& inputs, const Split& split,
                    const std::string& name, std::optional<size_t> number, int64_t width) {
  const bool has_cls = run.stored.config.model_config.pooling == "cls";
  const TaskShape shape = run.task->shape();
  const std::string change = analysis::window_change(name), size = std::to_string(width);
  // Some layers are other functions on shorter sequences.
  const std::string bound = analysis::bound_by(run.stored.config, run.encoder(), width);
  if (!bound.empty()) {
    return inputs.refuse(change, size,
                         run.folder + ": " + bound + " belongs to sequences of " +
                             std::to_string(shape.length) + " tokens");
  }
  if (!number && has_cls) {
    // CLS of one layer would tell the windows of the next one about each other.
    if (run.stored.config.masking()) {
      return inputs.refuse(change, size,
                           run.folder + ": CLS joins all windows, set model.pooling=mean");
    }
    const analysis::Adaptation to{.shape = shape, .receptive_field = width};
    return inputs.add(change, size, analysis::adapted_model(run, to), split, shape);
  }
  const analysis::ReplacedLayers guard(
      run.encoder(), [&](analysis::SequenceLayerPtr layer, size_t n) {
        const bool is_chosen = !number || n == *number;
        return is_chosen ? analysis::in_windows(std::move(layer), width, has_cls) : layer;
      });
  return inputs.add(change, size, run.encoder(), split, shape);
}

// Nothing when a stop was requested.
std::optional<std::vector<ReachFigures>> gradient_figures(const LoadedRun& run, const Split& split,
                                                          const std::vector<int64_t>& examples,
                                                          const Asked& asked) {
  analysis::ReachSums sums(run.encoder(), run.stored.config.model_config, run.folder);
  const auto masking = run.stored.config.masking();
  Progress bar = asked.bar("gradients", static_cast<int64_t>(examples.size()));
  for (const int64_t example : examples) {
    if (stop_requested()) return {};
    training::Batch batch = training::make_batch(split, {&example, 1}, run.task->shape(), true);
    if (masking) {
      training::hide_positions(batch, {&example, 1}, run.task->shape(), masking->fixed(),
                               training::kNoStep);
    }
    sums.add(training::to_device(batch, run.model->device()).input, example);
    bar.update();
  }
  bar.finish();
  return sums.figures();
}

}  // namespace

std::optional<AnalysisRecord> analyze_reach(const Asked& asked) {
  const AnalyzeArguments& a = asked.a;
  const LoadedRun run = asked.run(training::ModelPrecision::kFloat32);
  const Dataset dataset = asked.data_of(run);
  const Split split = run.stored.config.split_of(*run.task, dataset, a.split);
  const std::vector<int64_t> examples = drawn_examples(split.size(), a.gradients);
  auto layers = gradient_figures(run, split, examples, asked);
  if (!layers) return {};
  ChangedInputs inputs(run, asked);
  bool going = inputs.add("none", "", run.encoder(), split, run.task->shape());
  for (const int64_t width : a.fields.empty() ? kWindows : a.fields) {
    if (width >= run.task->shape().length) continue;
    for (size_t n = 0; going && n < layers->size(); ++n) {
      const bool is_all = n + 1 == layers->size();
      going = add_in_windows(run, inputs, split, (*layers)[n].layer,
                             is_all ? std::nullopt : std::optional(n), width);
    }
  }
  if (!going) return {};
  analysis::set_windows(inputs.scores, *layers);
  AnalysisRecord record = empty_analysis(run, asked, &dataset);
  record.num_examples = inputs.scores[0].score->num_examples;
  record.reach = {.layers = std::move(*layers),
                  .scores = std::move(inputs.scores),
                  .num_gradients = static_cast<int64_t>(examples.size())};
  record.choices["precision"] = "float32";
  record.choices["examples"] = kDrawnExamples;
  record.choices["gradient"] =
      "of the predicted score; norm over channels, as shares of each output place's sum; places "
      "drawn in proportion to the norm of the gradient there";
  record.choices["windows"] =
      "blocks of so many tokens, which the layer gets as sequences of their own; CLS joins each";
  return record;
}

}  // namespace lra::cli
