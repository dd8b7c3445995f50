// Tables in the layout of the paper, for \usepackage{booktabs}.
#include <algorithm>

#include "base/text_format.h"
#include "report/comparison_tables.h"
#include "report/formats.h"
#include "report/markup.h"
#include "report/speed_grid.h"
#include "report/tables.h"
#include "report/task_averages.h"

namespace lra::report {
namespace {

// A percent sign would start a comment, and clean() has taken out line ends.
std::string comment(std::string_view text) { return "% " + clean(text) + "\n"; }

// As in the paper: the best figure of a column bold, the second underlined.
class Ranking {
 public:
  void add(std::optional<double> value) {
    if (value) values_.push_back(*value);
  }
  std::string mark(std::optional<double> value, const std::string& text) const {
    if (!value) return text;
    const auto above =
        std::count_if(values_.begin(), values_.end(), [&](double other) { return other > *value; });
    if (above == 0) return "\\textbf{" + text + "}";
    return above == 1 ? "\\underline{" + text + "}" : text;
  }

 private:
  std::vector<double> values_;
};

std::optional<double> ranked_value(const Cell& cell) {
  return cell.fail ? std::nullopt : cell.full_accuracy();
}

std::string figure_of(const Cell& cell) {
  if (cell.fail) return "FAIL";
  if (cell.accuracy.count == 0) return latex(cell.was_run() ? figure_text(cell) : "--");
  return fixed(cell.accuracy.mean, 2) + (cell.shortfall.empty() ? "" : "$^\\dagger$");
}

// Seeds, interval and lost runs, as in the other formats.
std::string spread_of(const Cell& cell) {
  const std::string text = spread_text(cell);
  if (text.empty()) return "";
  std::string marked = latex(text);
  const std::string_view sign = "±";
  if (const size_t at = marked.find(sign); at != std::string::npos) {
    marked.replace(at, sign.size(), "$\\pm$");
  }
  return " {\\scriptsize [" + marked + "]}";
}

std::string average_text(std::optional<double> value) { return value ? fixed(*value, 2) : "--"; }

std::string begin_table(const std::string& columns, const std::string& caption) {
  return "\\begin{table}\n\\caption{" + caption + "}\n\\begin{tabular}{" + columns +
         "}\n\\toprule\n";
}

constexpr std::string_view kEndTable = "\\bottomrule\n\\end{tabular}\n\\end{table}\n";

std::string accuracy_table(const Leaderboard& board) {
  const size_t num_columns = board.columns.size();
  std::vector<Ranking> rankings(num_columns + 2);
  for (const Row& row : board.rows) {
    for (size_t i = 0; i < num_columns; ++i) rankings[i].add(ranked_value(row.cells[i]));
    rankings[num_columns].add(row.scored.ours);
    rankings[num_columns + 1].add(row.present.ours);
  }
  std::string text = begin_table("l" + std::string(num_columns + 2, 'c'),
                                 "Test accuracy in percent, of one seed or, with the 95\\,\\% "
                                 "interval $\\pm$ over them, of $n$ "
                                 "seeds. Avg 5 is over ListOps, Text, Retrieval, Image and "
                                 "Pathfinder, Avg all over every task "
                                 "shown. $\\dagger$: fewer steps than the preset has, or a part of "
                                 "the test set; in no average.");
  text += "Model";
  for (const TaskColumn& column : board.columns) text += " & " + latex(column.title);
  text += " & Avg 5 & Avg all \\\\\n\\midrule\n";
  for (const Row& row : board.rows) {
    text += latex(row_label(board, row));
    for (size_t i = 0; i < num_columns; ++i) {
      const Cell& cell = row.cells[i];
      text += " & " + rankings[i].mark(ranked_value(cell), figure_of(cell)) + spread_of(cell);
    }
    for (size_t i = 0; const auto& average : {row.scored.ours, row.present.ours}) {
      text += " & " + rankings[num_columns + i++].mark(average, average_text(average));
    }
    text += " \\\\\n";
  }
  const std::vector<TaskAverage> averages = task_averages(board);
  if (!averages.empty() || !board.baselines.empty()) text += "\\midrule\n";
  const auto spread_cell = [](const Summary& of) {
    return " & " + (of.deviation ? fixed(of.mean, 2) + " (" + fixed(*of.deviation, 2) + ")" : "--");
  };
  for (const TaskAverage& row : averages) {
    text += latex(row.name);
    for (const Summary& cell : row.cells) text += spread_cell(cell);
    text += spread_cell(row.scored) + " & -- \\\\\n";
  }
  for (const BaselineRow& row : board.baselines) {
    text += "\\textit{" + latex(row.name) + "}";
    for (const auto& accuracy : row.accuracy) text += " & " + average_text(accuracy);
    text += " & " + average_text(row.scored) + " & -- \\\\\n";
  }
  return text + std::string(kEndTable);
}

std::string speed_cell(const SpeedRow* row) {
  if (!row) return " & --";
  return " & " + latex(rate_text(row->measured.steps_per_s) +
                       (row->relative ? " (" + ratio_text(row->relative) + ")" : ""));
}

std::string memory_cell(const SpeedGrid& grid, const SpeedRow* row) {
  if (!row) return " & --";
  return " & " + latex(human_bytes(static_cast<uint64_t>(grid.memory_bytes(*row))));
}

std::string speed_table(const SpeedGrid& grid) {
  std::string text = begin_table(
      "l" + std::string(2 * grid.lengths.size(), 'c'),
      latex(efficiency_title(grid)) + ". Steps per second (relative to the Transformer) and peak " +
          (grid.counts_tensors ? "memory of tensors: " : "resident memory: ") +
          latex(grid.mode + ", " + grid.setting()) + ".");
  for (const char* half : {"steps per second", "peak memory"}) {
    text += " & \\multicolumn{" + std::to_string(grid.lengths.size()) + "}{c}{" + half + "}";
  }
  text += " \\\\\n";
  for (int half = 0; half < 2; ++half) {
    for (const int64_t length : grid.lengths) text += " & " + std::to_string(length);
  }
  text += " \\\\\n\\midrule\n";
  for (const SpeedGridLine& line : grid.lines) {
    std::string speeds, memories;
    for (const int64_t length : grid.lengths) {
      const auto found = line.at.find(length);
      const SpeedRow* row = found == line.at.end() ? nullptr : found->second;
      speeds += speed_cell(row);
      memories += memory_cell(grid, row);
    }
    text += latex(line.title) + speeds + memories + " \\\\\n";
  }
  return text + std::string(kEndTable);
}

std::string speed_tables(const std::vector<SpeedGrid>& grids) {
  std::string text;
  for (const SpeedGrid& grid : grids) text += "\n" + speed_table(grid);
  return text;
}

std::string plain_table(const Table& table) {
  const auto words = static_cast<size_t>(table.num_left);
  std::string text =
      "\n" + begin_table(std::string(words, 'l') + std::string(table.header.size() - words, 'r'),
                         latex(table.title + ". " + table.caption));
  for (size_t i = 0; i < table.header.size(); ++i) {
    text += (i ? " & " : "") + latex(table.header[i]);
  }
  text += " \\\\\n\\midrule\n";
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) text += (i ? " & " : "") + latex(row[i].text);
    text += " \\\\\n";
  }
  return text + std::string(kEndTable);
}

// Tables 3 and 5, and what Figure 2 shows.
std::string analysis_tables(const std::vector<Analysis>& analyses) {
  std::string text;
  for (const auto make : {generalization_table, convergence_table, span_table, controls_table}) {
    const Table table = make(analyses);
    if (!table.rows.empty()) text += plain_table(table);
  }
  return text;
}

}  // namespace

std::string format_latex(const ReportInput& input) {
  std::string text = comment(input.title) + comment("Needs \\usepackage{booktabs}.");
  for (const Row& row : input.board.rows) {
    text += comment(row_label(input.board, row) + ": preset " + row.preset + ", validation " +
                    row.validation + ", checkpoint " + row.checkpoint + ", " + row.division +
                    ", revision " + row.revisions + ", " + row.machines);
  }
  for (const std::string& warning : input.board.warnings) text += comment("Warning: " + warning);
  for (const std::string& problem : input.problems) text += comment("Left out: " + problem);
  text += "\n";
  if (!input.board.rows.empty()) text += accuracy_table(input.board);
  return text + speed_tables(input.grids) + analysis_tables(input.analyses);
}

}  // namespace lra::report
