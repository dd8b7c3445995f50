// Declarations shared by the files of `lra analyze`.
//
// Goals of the room `compute`: the part of each command that needs LibTorch, so that the program
// starts without it. Non-goals: flags and their checks, which cli has; anything that a library user
// would call.
#pragma once

#include <optional>
#include <string>

#include "cli/compute.h"
#include "training/run/loaded_run.h"

namespace lra::cli {

// A record of that kind about a run, its checkpoint and the program, without results yet. `dataset`
// is the data that was read as the run's, if any.
AnalysisRecord empty_analysis(const training::LoadedRun& run, const std::string& kind,
                              const CommonOptions& common, const Dataset* dataset = nullptr);
Dataset analysis_data(const training::LoadedRun& run, const CommonOptions& common,
                      const AnalyzeArguments& a);

// As analysis_of().
using Analysis = std::optional<AnalysisRecord>(const CommonOptions&, const AnalyzeArguments&,
                                               const std::string& folder);
Analysis analyze_span, analyze_generalization, analyze_convergence, analyze_rollout,
    analyze_embeddings, analyze_controls, analyze_transfer, analyze_reach, analyze_breakdown;

}  // namespace lra::cli
