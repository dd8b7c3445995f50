// The sections of the HTML page, each a string; empty when there is nothing to show.
#pragma once

#include <string>
#include <vector>

#include "report/formats.h"
#include "report/tables.h"

namespace lra::report {

// The accuracy table: figure, spread and the paper's figures in each cell, sortable, baselines in
// the foot.
std::string leaderboard_html(const Leaderboard& board);

// Any other table, sortable, with heading and caption.
std::string table_html(const Table& table);

// A <details> for every record: result, protocol, provenance, settings.
std::string runs_html(const std::vector<RunRecord>& records);

// "<th>" of a sortable column. `word`: text rather than figures.
std::string column_header(const std::string& title, bool word,
                          const std::string& more_classes = "");

}  // namespace lra::report
