// Tables for \usepackage{booktabs}, ready to be pasted: no comments, no preamble.
#include "report/formats/formats.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

// Follows the paper: the best figure of a column is bold, the second underlined.
std::string latex_cell(const TableCell& cell) {
  const std::string text = latex(cell.shown());
  if (cell.emphasis == Emphasis::kBest) return "\\textbf{" + text + "}";
  if (cell.emphasis == Emphasis::kSecond) return "\\underline{" + text + "}";
  return text;
}

std::string latex_line(const Cells& cells) {
  std::string text;
  for (const TableCell& cell : cells) text += (text.empty() ? "" : " & ") + latex_cell(cell);
  return text + " \\\\\n";
}

}  // namespace

std::string latex_table(const Table& table) {
  if (table.rows.empty()) return "";
  std::string columns;
  for (size_t i = 0; i < table.header.size(); ++i) columns += table.is_word(i) ? 'l' : 'r';
  return "\\begin{table}\n\\centering\n\\caption{" + latex(table.title + ". " + table.caption) +
         "}\n\\begin{tabular}{" + columns + "}\n\\toprule\n" + latex_line(table.header_cells()) +
         "\\midrule\n" + concatenated(table.rows, latex_line) +
         "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

std::string format_latex(const ReportInput& input) {
  std::vector<Table> tables = {results_table(input.board), comparisons_table(input)};
  for (const char* mode : {"train", "infer"}) {
    for (Table& table : efficiency_tables(input, mode)) tables.push_back(std::move(table));
  }
  for (const auto make :
       {generalization_table, convergence_table, span_table, controls_table, reach_table}) {
    tables.push_back(make(input.options.analyses));
  }
  return joined(mapped(tables, latex_table), "\n");
}

}  // namespace lra::report
