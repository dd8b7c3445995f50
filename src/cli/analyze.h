// Declarations shared by the files of `lra analyze`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "records/analysis_record.h"
#include "training/run/loaded_run.h"

namespace lra::cli {

struct AnalyzeArguments {
  std::vector<std::string> runs;
  training::WeightsChoice weights;
  std::string split, data, thresholds;  // thresholds: empty for those of default_thresholds()
  bool other_data = false;
  int64_t samples = 1000, examples = 0, count = 4;
  std::vector<int64_t> indices, fields, lengths;
  std::string to = "pathx";
  std::vector<std::string> positions = {"stretched", "continued"};
};

// A record of that kind about a run, its checkpoint and the program, without results yet. `dataset`
// is the data that was read as the run's, if any.
AnalysisRecord analysis_of(const training::LoadedRun& run, const std::string& kind,
                           const CommonOptions& common, const Dataset* dataset = nullptr);
Dataset analysis_data(const training::LoadedRun& run, const CommonOptions& common,
                      const AnalyzeArguments& a);

// Each reads one run folder and writes only pictures and matrices, next to the future record.
// Returns nullopt if a stop was requested.
using Analysis = std::optional<AnalysisRecord>(const CommonOptions&, const AnalyzeArguments&,
                                               const std::string& folder);
Analysis analyze_span, analyze_generalization, analyze_convergence, analyze_rollout,
    analyze_embeddings, analyze_controls, analyze_transfer, analyze_breakdown;

// A short table for people.
std::string analysis_text(const AnalysisRecord& record, const std::string& folder);

}  // namespace lra::cli
