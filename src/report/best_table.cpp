// The first table of a report: the best model of each task, and what it cost.
#include "base/text_format.h"
#include "report/baselines.h"
#include "report/tables.h"

namespace lra::report {
namespace {

// The highest of the rows that `figure` has a value for; null if it has none.
const Row* highest(const Leaderboard& board, const RowFigure& figure) {
  const Row* best = nullptr;
  for (const Row& row : board.rows) {
    if (row.is_self_pretrained || !figure(row)) continue;
    if (!best || *figure(row) > *figure(*best)) best = &row;
  }
  return best;
}

// "short: Local Attention, 1,350 of 5,000 steps"; of a task without a figure: how its runs ended.
std::string without_full_run(const Leaderboard& board, size_t column) {
  const Row* best =
      highest(board, [&](const Row& row) { return row.cells[column].shown_accuracy(); });
  if (!best) return "no figure";
  const Cell& cell = best->cells[column];
  return cell.fail ? best->title + ": FAIL" : "short: " + best->title + ", " + cell.shortfall;
}

std::string with_interval(const Cell& cell) {
  return figure_text(cell) + (cell.interval ? " ± " + fixed(*cell.interval, 2) : "");
}

std::vector<TableCell> line_of(const Leaderboard& board, size_t column) {
  const TableCell task = {board.columns[column].title};
  const BaselineRow* best_trivial = best_baseline(board, column);
  const TableCell trivial = {best_trivial ? accuracy_text(best_trivial->accuracy[column]) : "-",
                             Emphasis::kQuiet};
  const Row* best = highest(board, ranked_figure(column));
  const TableCell none = {"-"};
  if (!best) {
    return {
        task, {without_full_run(board, column), Emphasis::kQuiet}, none, trivial, none, none, none,
        none};
  }
  const Cell& cell = best->cells[column];
  const bool is_trivial = is_at_baseline(board, column, cell);
  const auto peak = cell.speed.peak_memory_bytes;
  return {task,
          {is_trivial ? "none above trivial; highest: " + best->title : best->title,
           is_trivial ? Emphasis::kQuiet : Emphasis::kBest},
          {with_interval(cell), is_trivial ? Emphasis::kQuiet : Emphasis::kPlain},
          trivial,
          {size_text(cell.num_parameters)},
          {time_text(cell.train_seconds)},
          {peak ? human_bytes(static_cast<uint64_t>(*peak)) : "-"},
          {cell.devices.empty() ? "-" : cell.devices}};
}

}  // namespace

Table best_table(const Leaderboard& board) {
  Table table{
      .title = "Best of each task",
      .caption =
          "Of full runs, by test accuracy in percent, ± its 95 % interval; the cost is that "
          "of one run. Trivial: the best classifier that needs no model.",
      .header = {"Task", "Model", "Accuracy", "Trivial", "Parameters", "Training time",
                 "Peak memory", "Computed by"},
      .rows = {},
      .num_left = 2,
      .is_list = true};
  if (board.rows.size() < 2) return table;
  for (size_t i = 0; i < board.columns.size(); ++i) table.rows.push_back(line_of(board, i));
  return table;
}

}  // namespace lra::report
