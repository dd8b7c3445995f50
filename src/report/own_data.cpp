// Data of a user's own has no published figures, so it stands apart from the benchmark's tasks.
#include "base/text_format.h"
#include "report/tables.h"

namespace lra::report {
namespace {

std::string best_baseline(const Leaderboard& board, size_t column) {
  std::optional<double> best;
  std::string name;
  for (const BaselineRow& row : board.baselines) {
    const std::optional<double> accuracy = row.accuracy[column];
    if (!accuracy || (best && *accuracy <= *best)) continue;
    best = accuracy;
    name = row.name;
  }
  return best ? accuracy_text(best) + " " + name : "-";
}

}  // namespace

Table own_data_table(const Leaderboard& own) {
  Table table{.title = "Own data: test accuracy, percent",
              .caption =
                  "In brackets the number of seeds n and the half-width of the 95 % interval "
                  "over them. Rows of one data set compare with each other alone.",
              .header = {"Data", "Model", "Settings", "Accuracy", "Trivial baseline", "Preset",
                         "Validation", "Division"},
              .rows = {},
              .num_left = 3,
              .num_keys = 2};
  for (size_t i = 0; i < own.columns.size(); ++i) {
    for (const Row& row : own.rows) {
      const Cell& cell = row.cells[i];
      if (!cell.was_run()) continue;
      const std::string spread = spread_text(cell);
      table.rows.push_back({{own.columns[i].title},
                            {row.title},
                            {row.settings.empty() ? "-" : row.settings},
                            {figure_text(cell) + (spread.empty() ? "" : " [" + spread + "]"),
                             rank_of(own, row, ranked_figure(i))},
                            {best_baseline(own, i), Emphasis::kQuiet},
                            {row.preset},
                            {cell.validation},
                            {cell.division}});
    }
  }
  return table;
}

}  // namespace lra::report
