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
#include "training/run/loaded_run.h"

namespace lra::cli {

// A record of that kind about a run, its checkpoint and the program, without results yet. `dataset`
// is the data that was read as the run's, if any.
AnalysisRecord empty_analysis(const training::LoadedRun& run, const std::string& kind,
                              const CommonOptions& common, const Dataset* dataset = nullptr);
Dataset analysis_data(const training::LoadedRun& run, const CommonOptions& common,
                      const AnalyzeArguments& a);

// Scores of one run on changed inputs or with a changed model, one after another.
class ChangedInputs {
 public:
  // `examples` of each split are evaluated; 0: all.
  ChangedInputs(const training::LoadedRun& run, const CommonOptions& common, int64_t examples)
      : run_(run), common_(common), examples_(examples) {}

  // Evaluates `model` on a split of examples of that shape, with a bar. Returns false when a stop
  // was requested.
  bool add(const std::string& change, const std::string& value, const models::Model& model,
           const Split& split, const TaskShape& shape);
  // Notes that there is no score, and why.
  void refuse(const std::string& change, const std::string& value, const std::string& why);

  std::vector<ChangedInput> scores;

 private:
  const training::LoadedRun& run_;
  const CommonOptions& common_;
  int64_t examples_;
};

// As analysis_of().
using Analysis = std::optional<AnalysisRecord>(const CommonOptions&, const AnalyzeArguments&,
                                               const std::string& folder);
Analysis analyze_span, analyze_generalization, analyze_convergence, analyze_rollout,
    analyze_embeddings, analyze_controls, analyze_transfer, analyze_reach, analyze_breakdown;

}  // namespace lra::cli
