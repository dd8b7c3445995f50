// Learning curves.
#pragma once

#include <string>
#include <vector>

#include "report/tables/leaderboard.h"

namespace lra::report {

// One <figure> per task that has curves: validation accuracy in percent against the training step,
// a line per run, a style per model and preset, a legend, a text alternative, and the end points as
// a table. Empty when no run has a curve.
std::string curves_html(const std::vector<RunRecord>& records, const Leaderboard& board);

// At most about `most` points that keep every rise and dip: the lowest and the highest of each
// stretch, in order, and both ends. Points with a value that is not finite are left out.
std::vector<Evaluation> thinned_curve(const std::vector<Evaluation>& curve, size_t most);

}  // namespace lra::report
