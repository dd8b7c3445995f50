// lra analyze reach: gradients by distance, and the score with layers in windows.
#include "analysis/adapted_model.h"
#include "analysis/reach.h"
#include "base/stop_flag.h"
#include "compute/analyses.h"
#include "data/drawn_examples.h"
#include "io/progress.h"
#include "training/loop/batches.h"

namespace lra::cli {
namespace {

using training::LoadedRun;

const std::vector<int64_t> kWindows = {4, 16, 64, 256};  // where --fields is not given

// Scores of one run with layers in windows, one after another.
class WindowScores {
 public:
  WindowScores(const LoadedRun& run, const Split& split, const CommonOptions& common,
               int64_t examples)
      : run_(run), split_(split), inputs_(run, common, examples) {}

  // Return false when a stop was requested.
  bool add_own() { return add("none", "", run_.encoder()); }
  // The layer of this number in windows, or all of them.
  bool add_in_windows(const std::string& name, std::optional<size_t> number, int64_t width) {
    const bool has_cls = run_.stored.config.model_config.pooling == "cls";
    const std::string change = analysis::window_change(name), size = std::to_string(width);
    // Some layers are other functions on shorter sequences.
    const std::string bound = analysis::bound_by(run_.stored.config, run_.encoder(), width);
    if (!bound.empty()) {
      return refuse(change, size,
                    bound + " belongs to sequences of " +
                        std::to_string(run_.task->shape().length) + " tokens");
    }
    if (!number && has_cls) {
      // CLS of one layer would tell the windows of the next one about each other.
      if (run_.stored.config.masking())
        return refuse(change, size, "CLS joins all windows, set model.pooling=mean");
      const analysis::Adaptation to{.shape = run_.task->shape(), .receptive_field = width};
      return add(change, size, analysis::adapted_model(run_, to));
    }
    const analysis::ReplacedLayers guard(
        run_.encoder(), [&](analysis::SequenceLayerPtr layer, size_t n) {
          const bool is_chosen = !number || n == *number;
          return is_chosen ? analysis::in_windows(std::move(layer), width, has_cls) : layer;
        });
    return add(change, size, run_.encoder());
  }

  std::vector<ChangedInput>& scores() { return inputs_.scores; }

 private:
  bool refuse(const std::string& change, const std::string& size, const std::string& why) {
    inputs_.refuse(change, size, run_.folder + ": " + why);
    return true;
  }
  bool add(const std::string& change, const std::string& value, const models::Model& model) {
    return inputs_.add(change, value, model, split_, run_.task->shape());
  }

  const LoadedRun& run_;
  const Split& split_;
  ChangedInputs inputs_;
};

// Nothing when a stop was requested.
std::optional<std::vector<ReachFigures>> gradient_figures(const LoadedRun& run, const Split& split,
                                                          const std::vector<int64_t>& examples,
                                                          bool quiet) {
  analysis::ReachSums sums(run.encoder(), run.stored.config.model_config, run.folder);
  const auto masking = run.stored.config.masking();
  Progress bar({.description = "gradients",
                .total = static_cast<int64_t>(examples.size()),
                .unit = "ex",
                .quiet = quiet});
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

std::optional<AnalysisRecord> analyze_reach(const CommonOptions& common, const AnalyzeArguments& a,
                                            const std::string& folder) {
  const LoadedRun run(folder, a.weights, training::ModelPrecision::kFloat32,
                      at::Device(common.device));
  const Dataset dataset = analysis_data(run, common, a);
  const Split split = run.stored.config.split_of(*run.task, dataset, a.split);
  const std::vector<int64_t> examples = drawn_examples(split.size(), a.gradients);
  auto layers = gradient_figures(run, split, examples, common.quiet);
  if (!layers) return {};
  WindowScores scores(run, split, common, a.examples);
  bool going = scores.add_own();
  for (const int64_t width : a.fields.empty() ? kWindows : a.fields) {
    if (width >= run.task->shape().length) continue;
    for (size_t n = 0; going && n < layers->size(); ++n) {
      const bool is_all = n + 1 == layers->size();
      going = scores.add_in_windows((*layers)[n].layer, is_all ? std::nullopt : std::optional(n),
                                    width);
    }
  }
  if (!going) return {};
  analysis::set_windows(scores.scores(), *layers);
  AnalysisRecord record = empty_analysis(run, "reach", common, &dataset);
  record.split = a.split;
  record.num_examples = scores.scores()[0].score->num_examples;
  record.reach = {.layers = std::move(*layers),
                  .scores = std::move(scores.scores()),
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
