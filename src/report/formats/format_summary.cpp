// A report that fits a terminal's window: accuracies, learning curves, speed and memory.
#include <algorithm>
#include <set>

#include "base/text_format.h"
#include "report/formats/chart.h"
#include "report/formats/formats.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

Table accuracies(const Leaderboard& board) {
  Table table{.title = "Test accuracy, percent", .caption = marks_legend(board)};
  std::vector<std::string> marks;
  for (const Row& row : board.rows) {
    table.add(figures_line(board, row));
    marks.push_back(marks_text(board, row));
  }
  if (table.rows.empty()) return table;
  const BaselineRow best = best_of_baselines(board, "best trivial baseline");
  std::vector<std::string> texts = mapped(best.accuracy, accuracy_text);
  texts.insert(texts.begin(), best.name);
  table.rows.push_back(quiet_cells(texts));
  add_marks(table, std::move(marks));
  return table;
}

// Training speed and memory at each length that was measured.
Table speeds(const Leaderboard& board) {
  Table table{.title = "Training speed and memory",
              .caption = "Tokens per second, and the peak memory of tensors in a step."};
  std::set<int64_t> lengths;
  std::vector<SpeedGridLine> lines;
  for (const SpeedRow& row : board.speeds) {
    if (row.measured.mode != "train") continue;
    lengths.insert(row.measured.length);
    auto line = std::ranges::find(lines, row.title, &SpeedGridLine::title);
    if (line == lines.end()) line = lines.insert(line, {row.model, row.title, {}});
    line->at.emplace(row.measured.length, &row);
  }
  for (const SpeedGridLine& line : lines) {
    TitledCells cells = {{"Model", {line.title}}};
    for (const int64_t length : lengths) {
      const SpeedRow* row = line.find(length);
      const std::string speed = row ? rate_text(row->measured.tokens_per_s) + "/s" : "-";
      const int64_t bytes = row ? row->measured.peak_tensor_bytes : 0;
      cells.push_back({thousands(length) + " tokens: speed", {speed}});
      cells.push_back({"memory", {bytes > 0 ? memory_text(bytes) : "-"}});
    }
    table.add(cells);
  }
  return table;
}

// The first run of each row that has a curve.
std::string curves_text(const ReportInput& input) {
  std::string text;
  for (size_t column = 0; column < input.board.columns.size(); ++column) {
    std::vector<Curve> curves;
    for (const Row& row : input.board.rows) {
      for (const size_t run : row.cells[column].runs) {
        auto points = learning_curve(input.records[run]);
        if (points.size() < 2) continue;
        curves.push_back(
            {row_label(input.board, row, row.cells[column].settings), std::move(points)});
        break;
      }
    }
    if (curves.empty()) continue;
    text += clean(input.board.columns[column].title) + ", validation accuracy\n\n" +
            terminal_chart(std::move(curves),
                           {.color = input.options.color, .braille = input.options.braille});
  }
  return text;
}

}  // namespace

std::string format_summary(const ReportInput& input) {
  std::string text = clean(input.options.title) + "\n\n";
  for (const Table& table : {accuracies(input.board), speeds(input.board)}) {
    if (!table.rows.empty()) text += text_table(table, input.options.color);
  }
  text += curves_text(input);
  const size_t warnings = input.board.warnings.size() + input.options.problems.size();
  if (warnings > 0) {
    text += std::to_string(warnings) + (warnings == 1 ? " warning" : " warnings") +
            ", see the report\n";
  }
  return text;
}

}  // namespace lra::report
