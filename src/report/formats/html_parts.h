// The sections of the HTML page, each a string; empty when there is nothing to show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/formats/formats.h"

namespace lra::report {

// The leaderboard with its caption: rows of full runs, trivial baselines and short runs, sortable
// within each group; empty without training runs.
std::string leaderboard_html(const ReportInput& input);
// The figures of a row in full, with the paper's, links to the runs, and the settings.
std::string row_details_html(const Leaderboard& board, const Row& row);

// Any other table, sortable, with heading and caption, or without the heading, empty for one
// without rows; or only the table.
std::string table_html(const Table& table);
std::string untitled_table_html(const Table& table);
std::string bare_table_html(Table table);
std::string caption_html(const std::string& text);
// Content behind a number and what it counts, in HTML: "7 warnings".
std::string folded_html(const char* attributes, size_t count, const std::string& what,
                        const std::string& content);

// One chart of quality against training speed, measured or as logged; empty for less than two
// models.
std::string quality_and_speed_html(const ReportInput& input);

// Figures 2 to 5 of the paper, and which of them have no data here.
std::string figures_html(const ReportInput& input);
// Accuracy by class, length and what a task knows: small multiples and tables.
std::string breakdown_html(const ReportInput& input);
// Names those of Tables 2 to 5 that have no data here.
std::string missing_tables_html(const ReportInput& input);

// One <figure> per task that has learning curves: validation accuracy in percent against the
// training step, a line per run, a style per model and preset, a legend, a text alternative, and
// the end points as a table.
std::string curves_html(const std::vector<RunRecord>& records, const Leaderboard& board);

// A <details> for every record: result, protocol, provenance, settings.
std::string runs_html(const std::vector<RunRecord>& records);

// Its style sheet and script. Their sources are the files of tools/web, which the build turns into
// the definitions of these functions.
std::string_view page_style();
std::string_view page_script();

// The words, each with its reason in a tooltip.
std::string marks_html(const Marks& marks);

// "<th>" of a sortable column: of the class "word" for one of texts rather than figures.
std::string column_header(const std::string& title, const std::string& classes);

}  // namespace lra::report
