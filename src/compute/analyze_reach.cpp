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

  // Returns false when a stop was requested.
  bool add_own() { return add("none", "", run_.encoder()); }
  bool add_layer(const std::string& name, size_t number, int64_t width) {
    return add_in_windows(name, width, [number](size_t n) { return n == number; });
  }
  bool add_all(const std::string& name, int64_t width) {
    if (!has_cls()) return add_in_windows(name, width, [](size_t) { return true; });
    // CLS of one layer would tell the windows of the next one about each other.
    if (refused(name, width)) return true;
    const TaskShape shape = run_.task->shape();
    if (run_.stored.config.masking()) {
      refuse(name, width, run_.folder + ": CLS joins all windows, set model.pooling=mean");
      return true;
    }
    return add(analysis::window_change(name), std::to_string(width),
               analysis::adapted_model(run_, {.shape = shape, .receptive_field = width}));
  }

  std::vector<ChangedInput>& scores() { return inputs_.scores; }

 private:
  bool has_cls() const { return run_.stored.config.model_config.pooling == "cls"; }

  void refuse(const std::string& name, int64_t width, const std::string& why) {
    inputs_.refuse(analysis::window_change(name), std::to_string(width), why);
  }
  // Notes that layers are other functions on shorter sequences.
  bool refused(const std::string& name, int64_t width) {
    const std::string bound = analysis::bound_by(run_.stored.config, run_.encoder(), width);
    if (bound.empty()) return false;
    refuse(name, width,
           run_.folder + ": " + bound + " belongs to sequences of " +
               std::to_string(run_.task->shape().length) + " tokens");
    return true;
  }

  template <typename Chosen>
  bool add_in_windows(const std::string& name, int64_t width, const Chosen& is_chosen) {
    if (refused(name, width)) return true;
    const analysis::ReplacedLayers guard(
        run_.encoder(), [&](analysis::SequenceLayerPtr layer, size_t n) {
          return is_chosen(n) ? analysis::in_windows(std::move(layer), width, has_cls()) : layer;
        });
    return add(analysis::window_change(name), std::to_string(width), run_.encoder());
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
      const std::string& name = (*layers)[n].layer;
      going =
          n + 1 < layers->size() ? scores.add_layer(name, n, width) : scores.add_all(name, width);
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
