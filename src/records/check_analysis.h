// Checks that the record of an analysis is consistent with itself and with the record of its run.
#pragma once

#include <string>
#include <vector>

#include "records/analysis_record.h"

namespace lra {

// One line for each figure of the analysis that is impossible or contradicts `run`: accuracies that
// are not a share of their examples or differ from the run's record for the same weights and
// inputs, a gap that is not the difference, thresholds that its validations reached at another
// step, other baselines, weights of another step than those that a finished run has. `run` is the
// run that was analyzed.
std::vector<std::string> check_analysis(const AnalysisRecord& analysis, const RunRecord& run);

}  // namespace lra
