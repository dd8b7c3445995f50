// One function per output format. Each cleans and escapes all text it prints.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"
#include "report/record_files.h"
#include "report/tables/leaderboard.h"
#include "report/tables/speed.h"

namespace lra::report {

struct ReportOptions;

// The input of every format.
struct ReportInput {
  const std::vector<RunRecord>& records;
  const Leaderboard& board;
  const Leaderboard& own;  // of users' own data, if the format keeps it apart; else empty
  const std::vector<SpeedGrid>& grids;  // of the board's speeds
  const ReportOptions& options;
};

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
// The results (results_table.h), the paper's Tables 2 to 5 and the content of Figure 2, with our
// figures, for the booktabs package. Without comments.
std::string format_latex(const ReportInput& input);
// One self-contained page.
std::string format_html(const ReportInput& input);

}  // namespace lra::report
