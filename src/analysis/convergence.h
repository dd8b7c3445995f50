// How fast a run learned (Tay et al. 2021, table 5): training steps until validation accuracy
// reaches given thresholds.
//
// A threshold is reached at the first evaluation whose accuracy is at or above it. Nothing is
// interpolated, so a step is exact to one period of evaluation.
#pragma once

#include <vector>

#include "records/analysis_record.h"
#include "records/run_record.h"

namespace lra::analysis {

// Convergence read from the run's validation curve. Seconds are the step times the run's mean time
// of a training step; absent when the run has no times. Thresholds lie within 0..1, in any order.
ConvergenceResult measure_convergence(const RunRecord& run, int64_t eval_every,
                                      const std::vector<double>& thresholds);

// "0.3,0.35" or "30%,35%" -> shares. Throws lra::Error for what is no number above 0 and up to 1
// (or 100 %).
std::vector<double> parse_thresholds(const std::string& text);

}  // namespace lra::analysis
