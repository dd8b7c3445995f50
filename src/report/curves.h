// Learning curves: as inline SVG for print and for readers without scripts, and as data for the
// chart of the page's script, which can be looked into.
#pragma once

#include <string>
#include <vector>

#include "report/leaderboard.h"

namespace lra::report {

// One <figure> per task that has curves: validation accuracy in percent against the training step,
// a line per run, a colour (and dash, from the ninth on) per model and preset, a legend, a text
// alternative, and the end points as a table. Empty when no run has a curve.
std::string curves_html(const std::vector<RunRecord>& records, const Leaderboard& board);

// Round numbers for an axis: 3 to 7 ticks that cover [low, high], a multiple of 1, 2 or 5 times a
// power of ten apart. `high` > `low`, both finite.
std::vector<double> axis_ticks(double low, double high);

// At most about `most` points that keep every rise and dip: the lowest and the highest of each
// stretch, in order, and both ends. Points with a value that is not finite are left out.
std::vector<Evaluation> thinned_curve(const std::vector<Evaluation>& curve, size_t most);

}  // namespace lra::report
