// What the files of `lra analyze` share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/analysis_record.h"
#include "cli/command.h"

namespace lra::cli {

struct AnalyzeArguments {
  std::vector<std::string> runs;
  std::string split, checkpoint = "last", data, thresholds = "30%,35%";
  bool other_data = false;
  int64_t samples = 1000, examples = 0, count = 4;
  std::vector<int64_t> indices;
};

// Each reads one run folder and writes nothing but pictures and matrices beside the record to come.
// Nothing when a stop was asked for.
using Analysis = std::optional<AnalysisRecord>(const CommonOptions&, const AnalyzeArguments&,
                                               const std::string& folder);
Analysis analyze_span, analyze_generalization, analyze_convergence, analyze_rollout,
    analyze_embeddings;

// For people: a short table.
std::string analysis_text(const AnalysisRecord& record, const std::string& folder);

}  // namespace lra::cli
