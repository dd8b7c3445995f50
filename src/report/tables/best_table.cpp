// The first table of a report: the best model of each task, and what it cost.
#include <tuple>

#include "base/text_format.h"
#include "report/tables/leaderboard.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

// The row with the highest figure of a column: on the paper's task, else on a changed one, and of
// full runs, else of short ones that are ranked, else of all; null if there is none.
const Row* best_row(const Leaderboard& board, size_t column) {
  const Row* best = nullptr;
  const auto score = [&](const Row& row) {
    const Cell& cell = row.cells[column];
    const bool is_full = cell.full_accuracy() && !cell.fail;
    const bool is_best = rank_in_column(board, row, column) == Emphasis::kBest;
    return std::tuple(cell.task_changes.empty(), is_full, is_best, *cell.shown_accuracy());
  };
  for (const Row& row : board.rows) {
    if (row.is_self_pretrained || !row.cells[column].shown_accuracy()) continue;
    if (!best || score(row) > score(*best)) best = &row;
  }
  return best;
}

Cells line_of(const Leaderboard& board, size_t column) {
  const std::string& title = board.columns[column].title;
  const Row* best = best_row(board, column);
  if (!best) {
    return {{title}, {"no figure", Emphasis::kQuiet}, {"-"}, {"-"}, {"-"}, {"-"}, {"-"}, {"-"}};
  }
  const Cell& cell = best->cells[column];
  const TableCell trivial = {cell.trivial.name.empty() ? "-" : fixed(cell.trivial.accuracy, 2),
                             Emphasis::kQuiet};
  const bool is_trivial = cell.has(MarkKind::kTrivial);
  const bool is_best =
      cell.full_accuracy() || rank_in_column(board, *best, column) == Emphasis::kBest;
  const std::string interval = cell.interval ? " ± " + fixed(*cell.interval, 2) : "";
  return {
      {joined({title, cell.task_changes})},
      {is_trivial ? "none above trivial; highest: " + best->title : best->title,
       is_trivial || !is_best ? Emphasis::kQuiet : Emphasis::kBest},
      {figure_text(cell) + interval, is_trivial ? Emphasis::kQuiet : Emphasis::kPlain, cell.marks},
      trivial,
      {size_text(cell.num_parameters)},
      {time_text(cell.train_seconds)},
      {memory_text(cell.speed.peak_memory_bytes)},
      {or_dash(cell.devices)}};
}

}  // namespace

Table best_table(const Leaderboard& board) {
  Table table{
      .title = "Best of each task",
      .caption =
          "By test accuracy in percent, ± its 95 % interval, of full runs if there are any; the "
          "cost is that of one run. Trivial: the best classifier that needs no model.",
      .header = {"Task", "Model", "Accuracy", "Trivial", "Parameters", "Training time",
                 "Peak memory", "Computed by"},
      .num_left = 2,
      .is_list = true};
  if (board.rows.size() < 2) return table;
  for (size_t i = 0; i < board.columns.size(); ++i) table.rows.push_back(line_of(board, i));
  return table;
}

}  // namespace lra::report
