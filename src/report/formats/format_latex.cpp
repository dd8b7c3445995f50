// Tables in the layout of the paper, for \usepackage{booktabs}.
#include "report/formats/formats.h"
#include "report/formats/markup.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

// A percent sign would start a comment, and clean() has taken out line ends.
std::string comment(std::string_view text) { return "% " + clean(text) + "\n"; }

// Follows the paper: the best figure of a column is bold, the second underlined.
std::string latex_cell(const TableCell& cell) {
  const std::string text = latex(cell.text + signs_of(cell.marks));
  switch (cell.emphasis) {
    case Emphasis::kBest:
      return "\\textbf{" + text + "}";
    case Emphasis::kSecond:
      return "\\underline{" + text + "}";
    case Emphasis::kPlain:
    case Emphasis::kQuiet:
      break;
  }
  return text;
}

std::string latex_line(const std::vector<TableCell>& cells) {
  std::string text;
  for (const TableCell& cell : cells) text += (text.empty() ? "" : " & ") + latex_cell(cell);
  return text + " \\\\\n";
}

std::string latex_table(const Table& table) {
  if (table.rows.empty()) return "";
  std::vector<TableCell> header;
  std::string columns;
  for (const std::string& title : table.header) {
    columns += table.is_word(header.size()) ? 'l' : 'r';
    header.push_back({title});
  }
  std::string text = "\n\\begin{table}\n\\caption{" + latex(table.title + ". " + table.caption) +
                     "}\n\\begin{tabular}{" + columns + "}\n\\toprule\n" + latex_line(header) +
                     "\\midrule\n";
  for (const auto& row : table.rows) text += latex_line(row);
  return text + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
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
  text += latex_table(accuracy_table(input.board));
  for (const char* mode : {"train", "infer"}) {
    for (const Table& table : efficiency_tables(input, mode)) text += latex_table(table);
  }
  for (const auto make : {generalization_table, convergence_table, span_table, controls_table}) {
    text += latex_table(make(input.analyses));
  }
  return text;
}

}  // namespace lra::report
