// The report as plain tables, before any format: what text and Markdown print, and the wording of
// cells that LaTeX and HTML share.
#pragma once

#include <string>
#include <vector>

#include "report/leaderboard.h"

namespace lra::report {

enum class Emphasis { kPlain, kBest, kQuiet };

struct TableCell {
  std::string text;
  Emphasis emphasis = Emphasis::kPlain;
};

enum class TableKind {
  kAccuracy,
  kProtocols,
  kTrainingSpeed,
  kMeasurements,
  kEfficiency,
  kGeneralization,
  kConvergence,
  kSpan,
  kSimilarity,
  kRollout,
  kControls,
  kTradeOff,
  kClaims
};

struct Table {
  TableKind kind;
  std::string title, caption;
  std::vector<std::string> header;
  std::vector<std::vector<TableCell>> rows;  // as many cells as the header has
  int num_left = 1;                          // leading columns that are words; the rest are figures
  int num_keys = 1;  // leading columns that name the row: repeated where a table is cut in two
};

// Leaderboard, protocols, training speed, measurements; tables without rows are left out. Texts
// are foreign as they stand: the formats clean and escape them.
std::vector<Table> report_tables(const Leaderboard& board);

// The row's title, with preset, checkpoint and settings when another row has the same title.
std::string row_label(const Leaderboard& board, const Row& row);

// "36.42", "36.42†" (not of full runs), "FAIL (50.02)", "diverged", "failed", "unfinished";
// "not run" only when it was not.
std::string figure_text(const Cell& cell);
// "n=3, ±0.51, 1 diverged": what goes with the figure; empty when there is nothing to say.
std::string spread_text(const Cell& cell);

// "-" for nothing; two decimals; "+0.40" for differences; "1.25x" for ratios.
std::string accuracy_text(std::optional<double> value);
std::string signed_text(std::optional<double> value);
std::string ratio_text(std::optional<double> value);
// "0.475", "12.34", "123.4", "12,345": speeds.
std::string rate_text(std::optional<double> value);

// Index of the row with the highest figure per column (FAIL left out), or -1.
std::vector<int> best_rows(const Leaderboard& board);

}  // namespace lra::report
