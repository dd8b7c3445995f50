// Generalization gap (Tay et al. 2021, table 3): accuracy on the training split less accuracy on
// the test split, each from a separate pass without dropout.
#pragma once

#include "records/analysis_record.h"

namespace lra::analysis {

// gap_error: the standard error of a difference of two independent binomial shares.
GeneralizationResult generalization_of(const Evaluation& train, const Evaluation& test);

}  // namespace lra::analysis
