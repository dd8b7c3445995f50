// Checks that the record of an analysis agrees with itself and with the record of its run.
#pragma once

#include <string>
#include <vector>

#include "records/analysis_record.h"

namespace lra {

// One line for each figure of the analysis that cannot be, or that `run` contradicts: accuracies
// that are no share of their examples, those of the run's own weights and inputs that are another
// than in its record, a gap that is no difference, thresholds that its validations reached at
// another step, other baselines. `run` is the run that was analyzed.
std::vector<std::string> check_analysis(const AnalysisRecord& analysis, const RunRecord& run);

}  // namespace lra
