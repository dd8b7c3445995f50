// One function per output format. Each cleans and escapes all text it prints.
#pragma once

#include <string>

#include "io/json.h"
#include "report/tables/tables.h"

namespace lra::report {

std::string format_text(const ReportInput& input);
// A report that fits a window: accuracies, speed, learning curves.
std::string format_summary(const ReportInput& input);
std::string format_markdown(const ReportInput& input);
// Fields of formats for programs, unrounded; null for nothing.
Json cell_json(const TaskColumn& column, const Cell& cell);
Json average_json(const Average& average);
Json speed_json(const SpeedRow& row);
// One line per figure (long format): see the header line. No units or thousands separators.
std::string format_csv(const ReportInput& input);
// Everything: leaderboard with all numbers, and the records themselves. ASCII only.
std::string format_json(const ReportInput& input);
// The results (results_table()), the paper's Tables 2 to 5 and the content of Figure 2, with our
// figures, for the booktabs package. Without comments.
std::string format_latex(const ReportInput& input);
// One self-contained page.
std::string format_html(const ReportInput& input);

// One table: lines of aligned text, with terminal colors or without; in Markdown, for the LaTeX
// package booktabs, and as a picture.
std::string text_table(Table table, bool color);
std::string markdown_table(const Table& table);
std::string latex_table(const Table& table);
std::string svg_table(const Table& table);

}  // namespace lra::report
