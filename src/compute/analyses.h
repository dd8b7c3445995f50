// Declarations shared by the files of `lra analyze`.
//
// Goals of the room `compute`: the part of each command that needs LibTorch, so that the program
// starts without it. Non-goals: flags and their checks, which cli has; anything that a library user
// would call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/compute.h"
#include "data/drawn_examples.h"
#include "io/progress.h"
#include "training/run/loaded_run.h"

namespace lra::cli {

// An analysis that was asked for, of one of the runs.
struct Asked {
  const std::string& kind;
  const CommonOptions& common;
  const AnalyzeArguments& a;
  const std::string& folder;

  training::LoadedRun run(training::ModelPrecision precision) const {
    return {folder, a.weights, precision, at::Device(common.device)};
  }
  Dataset data_of(const training::LoadedRun& run) const {
    return training::open_run_data(run, {a.data, a.other_data, common.quiet});
  }
  Progress bar(const std::string& description, int64_t num_examples) const {
    return Progress(
        {.description = description, .total = num_examples, .unit = "ex", .quiet = common.quiet});
  }
  // Says which examples of a split were evaluated.
  std::string examples_choice() const { return a.examples > 0 ? kDrawnExamples : "all"; }
};

// A record about a run, its checkpoint and the program, without results yet. `dataset` is the data
// that was read as the run's, if any: the record is then of --split.
AnalysisRecord empty_analysis(const training::LoadedRun& run, const Asked& asked,
                              const Dataset* dataset = nullptr);

// Scores of one run on changed inputs or with a changed model, one after another.
class ChangedInputs {
 public:
  ChangedInputs(const training::LoadedRun& run, const Asked& asked) : run_(run), asked_(asked) {}

  // Evaluates `model` on --examples of a split of that shape, with a bar. Returns false when a stop
  // was requested.
  bool add(const std::string& change, const std::string& value, const models::Model& model,
           const Split& split, const TaskShape& shape);
  // Notes that there is no score, and why. Returns true.
  bool refuse(const std::string& change, const std::string& value, const std::string& why);

  std::vector<ChangedInput> scores;

 private:
  const training::LoadedRun& run_;
  const Asked& asked_;
};

// As analysis_of().
using Analysis = std::optional<AnalysisRecord>(const Asked& asked);
Analysis analyze_span, analyze_generalization, analyze_convergence, analyze_rollout,
    analyze_embeddings, analyze_controls, analyze_transfer, analyze_reach, analyze_breakdown;

}  // namespace lra::cli
