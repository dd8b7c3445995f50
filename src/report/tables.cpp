#include "report/tables.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"

namespace lra::report {
namespace {

using Cells = std::vector<TableCell>;

void quiet(Cells& cells) {
  for (TableCell& cell : cells) cell.emphasis = Emphasis::kQuiet;
}

// "36.37 (+0.05)": the paper's figure and ours minus it.
std::string against_paper(std::optional<double> ours, std::optional<double> paper) {
  if (!paper) return "-";
  const auto moved = difference(ours, paper);
  return accuracy_text(paper) + (moved ? " (" + signed_text(moved) + ")" : "");
}

Cells paper_line(const Row& row, PaperVersion version) {
  const bool first = version == PaperVersion::kV0;
  Cells cells = {{first ? "  paper v0" : "  paper v1"}};
  for (const Cell& cell : row.cells) {
    const auto ours = cell.accuracy.count ? std::optional(cell.accuracy.mean) : std::nullopt;
    const auto paper = first ? cell.paper_v0 : cell.paper_v1;
    cells.push_back({cell.paper_fail ? "FAIL" : against_paper(ours, paper)});
  }
  for (const Average& average : {row.scored, row.present}) {
    cells.push_back({against_paper(average.ours, first ? average.paper_v0 : average.paper_v1)});
  }
  quiet(cells);
  return cells;
}

Cells figures_line(const Leaderboard& board, size_t index, const std::vector<int>& best) {
  const Row& row = board.rows[index];
  Cells cells = {{row_label(board, row)}};
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const std::string spread = spread_text(row.cells[i]);
    cells.push_back({figure_text(row.cells[i]) + (spread.empty() ? "" : " [" + spread + "]"),
                     best[i] == static_cast<int>(index) ? Emphasis::kBest : Emphasis::kPlain});
  }
  cells.push_back({accuracy_text(row.scored.ours)});
  cells.push_back({accuracy_text(row.present.ours)});
  return cells;
}

Table accuracy_table(const Leaderboard& board) {
  Table table{.kind = TableKind::kAccuracy,
              .title = "Test accuracy, percent",
              .caption =
                  "In brackets the number of seeds n and the half-width of the 95 % interval "
                  "over them. Avg 5 is the paper's average: ListOps, Text, Retrieval, Image "
                  "and Pathfinder. Avg all is over every task shown. Both need all their "
                  "parts. Under each row the paper's figures, and in parentheses ours minus "
                  "theirs.",
              .header = {"Model"},
              .rows = {}};
  for (const TaskColumn& column : board.columns) table.header.push_back(column.title);
  table.header.insert(table.header.end(), {"Avg 5", "Avg all"});
  const std::vector<int> best = best_rows(board);
  for (size_t i = 0; i < board.rows.size(); ++i) {
    table.rows.push_back(figures_line(board, i, best));
    if (!paper_model(board.rows[i].model)) continue;
    table.rows.push_back(paper_line(board.rows[i], PaperVersion::kV0));
    table.rows.push_back(paper_line(board.rows[i], PaperVersion::kV1));
  }
  if (board.rows.empty()) return table;
  for (const BaselineRow& baseline : board.baselines) {
    Cells cells = {{"trivial: " + baseline.name}};
    for (const auto& accuracy : baseline.accuracy) cells.push_back({accuracy_text(accuracy)});
    cells.push_back({accuracy_text(baseline.scored)});
    cells.push_back({"-"});
    quiet(cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// For a column that says the same, or nothing, in every row.
void drop_column(Table& table, std::ptrdiff_t column) {
  table.header.erase(table.header.begin() + column);
  for (Cells& row : table.rows) row.erase(row.begin() + column);
  if (column < table.num_left) --table.num_left;
}

Table protocol_table(const Leaderboard& board) {
  Table table{.kind = TableKind::kProtocols,
              .title = "Protocols",
              .caption =
                  "Validation: own split, held-out part of the training set, or the test set "
                  "itself. Checkpoint: the weights that were tested.",
              .header = {"Model", "Preset", "Settings", "Validation", "Checkpoint", "Division",
                         "Revision", "Machine"},
              .rows = {},
              .num_left = 8};
  for (const Row& row : board.rows) {
    Cells cells;
    for (const std::string& text : {row.title, row.preset, row.settings, row.validation,
                                    row.checkpoint, row.division, row.revisions, row.machines}) {
      cells.push_back({text.empty() ? "-" : text});
    }
    table.rows.push_back(std::move(cells));
  }
  const bool no_settings = std::all_of(board.rows.begin(), board.rows.end(),
                                       [](const Row& row) { return row.settings.empty(); });
  if (no_settings) drop_column(table, 2);
  return table;
}

Table training_speed_table(const Leaderboard& board) {
  Table table{.kind = TableKind::kTrainingSpeed,
              .title = "Speed and memory of the training runs",
              .caption =
                  "Training steps alone, padding counted as tokens. Relative: tokens per "
                  "second over the Transformer's on the same task, preset, machine and "
                  "revision.",
              .header = {"Task", "Model", "tokens/s", "steps/s", "relative", "peak memory"},
              .rows = {},
              .num_left = 2};
  for (size_t i = 0; i < board.columns.size(); ++i) {
    for (const Row& row : board.rows) {
      const CellSpeed& speed = row.cells[i].speed;
      if (!speed.tokens_per_s && !speed.peak_resident_bytes) continue;
      const auto peak = speed.peak_resident_bytes;
      table.rows.push_back({{board.columns[i].title},
                            {row_label(board, row)},
                            {rate_text(speed.tokens_per_s)},
                            {rate_text(speed.steps_per_s)},
                            {ratio_text(speed.relative)},
                            {peak ? human_bytes(static_cast<uint64_t>(*peak)) : "-"}});
    }
  }
  return table;
}

Table measurement_table(const Leaderboard& board) {
  Table table{.kind = TableKind::kMeasurements,
              .title = "Efficiency measurements",
              .caption =
                  "Medians of timed windows, in brackets the slowest and fastest window. "
                  "Relative: to the Transformer measured in the same conditions. Paper: "
                  "the same ratio on 16 TPU v3 chips.",
              .header = {"Task", "Model", "mode", "dtype", "length", "batch", "steps/s", "tokens/s",
                         "relative", "paper", "peak memory", "machine"},
              .rows = {},
              .num_left = 4};
  for (const SpeedRow& row : board.speeds) {
    const Measurement& m = row.measured;
    const std::string range =
        " [" + rate_text(m.slowest_steps_per_s) + ".." + rate_text(m.fastest_steps_per_s) + "]";
    table.rows.push_back(
        {{row.task},
         {row.title},
         {m.mode},
         {m.dtype},
         {thousands(m.length)},
         {thousands(m.batch)},
         {rate_text(m.steps_per_s) + (m.windows > 1 ? range : "")},
         {rate_text(m.tokens_per_s)},
         {ratio_text(row.relative)},
         {ratio_text(row.paper_relative)},
         {m.peak_resident_bytes > 0 ? human_bytes(static_cast<uint64_t>(m.peak_resident_bytes))
                                    : "-"},
         {row.machine}});
  }
  const bool one_machine =
      std::all_of(board.speeds.begin(), board.speeds.end(),
                  [&](const SpeedRow& row) { return row.machine == board.speeds[0].machine; });
  if (one_machine && !board.speeds.empty()) {
    table.caption += " Machine: " + board.speeds[0].machine + ".";
    drop_column(table, static_cast<std::ptrdiff_t>(table.header.size()) - 1);
  }
  return table;
}

}  // namespace

std::vector<Table> report_tables(const Leaderboard& board) {
  std::vector<Table> tables = {accuracy_table(board), protocol_table(board),
                               training_speed_table(board), measurement_table(board)};
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

std::string row_label(const Leaderboard& board, const Row& row) {
  const auto same_title = std::count_if(board.rows.begin(), board.rows.end(),
                                        [&](const Row& r) { return r.title == row.title; });
  if (same_title < 2) return row.title;
  std::string apart;
  for (const std::string& part : {row.preset, row.checkpoint, row.settings}) {
    if (!part.empty()) apart += (apart.empty() ? "" : ", ") + part;
  }
  return apart.empty() ? row.title : row.title + " (" + apart + ")";
}

std::string figure_text(const Cell& cell) {
  if (cell.fail) return "FAIL (" + fixed(cell.accuracy.mean, 2) + ")";
  if (cell.accuracy.count) return fixed(cell.accuracy.mean, 2);
  if (cell.num_diverged) return "diverged";
  if (cell.num_failed) return "failed";
  return cell.num_unfinished ? "unfinished" : "not run";
}

std::string spread_text(const Cell& cell) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (cell.accuracy.count > 1) {
    add("n=" + std::to_string(cell.accuracy.count));
    add("±" + fixed(*cell.accuracy.half_width95, 2));
  }
  if (cell.num_diverged) add(std::to_string(cell.num_diverged) + " diverged");
  if (cell.num_failed) add(std::to_string(cell.num_failed) + " failed");
  if (cell.num_unfinished) add(std::to_string(cell.num_unfinished) + " unfinished");
  return text;
}

std::string accuracy_text(std::optional<double> value) { return value ? fixed(*value, 2) : "-"; }

std::string signed_text(std::optional<double> value) {
  if (!value) return "-";
  // Rounded first, so that -0.001 is not "-0.00".
  const double rounded = std::round(*value * 100) / 100;
  return (rounded < 0 ? "-" : "+") + fixed(std::abs(rounded), 2);
}

std::string ratio_text(std::optional<double> value) { return value ? fixed(*value, 2) + "x" : "-"; }

std::string rate_text(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "-";
  if (*value >= 1e3 && *value < 1e18) return thousands(std::llround(*value));
  const double size = std::abs(*value);
  return fixed(*value, size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::vector<int> best_rows(const Leaderboard& board) {
  std::vector<int> best(board.columns.size(), -1);
  for (size_t i = 0; i < board.columns.size(); ++i) {
    double highest = -1;
    for (size_t r = 0; r < board.rows.size(); ++r) {
      const Cell& cell = board.rows[r].cells[i];
      if (cell.accuracy.count == 0 || cell.fail || cell.accuracy.mean <= highest) continue;
      highest = cell.accuracy.mean;
      best[i] = static_cast<int>(r);
    }
  }
  return best;
}

}  // namespace lra::report
