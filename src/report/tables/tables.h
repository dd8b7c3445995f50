// The report as plain tables, before any format; what they are made of, and the wording of cells
// that formats share.
#pragma once

#include <string>
#include <vector>

#include "report/record_files.h"
#include "report/tables/leaderboard.h"
#include "report/tables/literature.h"

namespace lra::report {

// The columns and rows of a table for a paper.
struct ResultsChoice {
  // Names of tasks, "average", "parameters", "time", "memory" and "seeds"; empty: the tasks that
  // have figures and, if a row has it, the average.
  std::vector<std::string> columns = {};
  bool with_paper = false, with_baselines = false;  // rows of their own below ours
};

struct ReportOptions {
  std::string title = "Long Range Arena";
  std::vector<std::string> problems = {};  // from collect_records: listed in the notes
  std::vector<Analysis> analyses = {};     // from collect_analyses
  Literature literature = {};              // from read_literature
  bool show_literature = false;            // text, md; the page has it folded otherwise
  bool color = false;                      // terminal colors; Format::kText and kSummary
  std::string compare = {};  // the model that Comparisons sets against others; empty: the best
  // Only the table of results, with these columns and rows: text, md, latex and svg.
  std::optional<ResultsChoice> results = {};
  bool braille = false;  // curves of braille dots; Format::kSummary
};

// The records and options that every table and format is made of.
struct ReportInput {
  const std::vector<RunRecord>& records;
  const Leaderboard& board;
  const Leaderboard& own;  // of users' own data, if the format keeps it apart; else empty
  const std::vector<SpeedGrid>& grids;  // of the board's speeds
  const ReportOptions& options;
};

enum class Emphasis { kPlain, kBest, kSecond, kQuiet };

struct TableCell {
  std::string text;
  Emphasis emphasis = Emphasis::kPlain;
  Marks marks = {};  // their signs follow the text

  std::string shown() const { return text + signs_of(marks); }
};
using Cells = std::vector<TableCell>;

// A cell under the title of its column.
struct TitledCell {
  std::string title;
  TableCell cell;
};
using TitledCells = std::vector<TitledCell>;

struct Table {
  std::string title, caption;
  std::vector<std::string> header = {};
  std::vector<Cells> rows = {};  // as many cells as the header has
  int num_left = 1;              // leading columns that are words; the rest are figures
  int num_keys = 1;       // leading columns that name the row: repeated where a table is cut in two
  bool is_list = false;   // rows are read one by one: on a narrow page each is a card
  int num_right = 0;      // trailing columns that are words
  size_t num_folded = 0;  // trailing rows that a page shows on request, under `folded`
  std::string folded = {};

  bool is_word(size_t column) const {
    const auto place = static_cast<int>(column), size = static_cast<int>(header.size());
    return place < num_left || place >= size - num_right;
  }
  // A row that names its columns, the same ones in each row.
  void add(const TitledCells& row) {
    header = mapped(row, &TitledCell::title);
    rows.push_back(mapped(row, &TitledCell::cell));
  }
  Cells header_cells() const {
    return mapped(header, [](const std::string& title) { return TableCell{title}; });
  }
};

// Quiet cells: those of a line that is not a model's.
Cells quiet_cells(const std::vector<std::string>& texts);
// "-" for an empty text.
std::string or_dash(const std::string& text);

// Texts are untrusted: the formats clean and escape them. A table without data has no rows.
// The best model of each task and what it cost; without rows if there is only one model.
Table best_table(const Leaderboard& board);
Table accuracy_table(const Leaderboard& board);  // Tables 1, 6 and 7
Table protocol_table(const Leaderboard& board);
Table training_speed_table(const Leaderboard& board);
Table measurement_table(const Leaderboard& board);
Table claims_table(const ReportInput& input);       // without rows if our figures test none
Table comparisons_table(const ReportInput& input);  // without rows if nothing was tested
Table literature_table(const Literature& literature);
// Table 2 ("train") or 4 ("infer"), one for each set of measurements that compare.
std::vector<Table> efficiency_tables(const ReportInput& input, std::string_view mode);
Table generalization_table(const std::vector<Analysis>& analyses);  // Table 3
Table convergence_table(const std::vector<Analysis>& analyses);     // Table 5
Table span_table(const std::vector<Analysis>& analyses);            // Figure 2
Table similarity_table(const std::vector<Analysis>& analyses);      // Figure 4
Table rollout_table(const std::vector<Analysis>& analyses);         // Figure 5
Table controls_table(const std::vector<Analysis>& analyses);        // and transfer
Table reach_table(const std::vector<Analysis>& analyses);

// A row for each model on each data set of a user's own; columns and rows as of a leaderboard.
Table own_data_table(const Leaderboard& own);
// A row for each run that predicts masked inputs.
Table pretraining_table(const std::vector<RunRecord>& records);

// All of these and our trade-off, except those without rows.
std::vector<Table> all_tables(const ReportInput& input);

// "Transformer, small preset, last weights, step 3,000": the subject of the analysis.
std::string analysis_label(const AnalysisRecord& record);

// Analyses in the paper's order of models and tasks, else as they came.
std::vector<const AnalysisRecord*> analyses_of(const std::vector<Analysis>& analyses,
                                               std::string_view kind);

// The row's title, with preset, checkpoint and `settings` when another row has the same title. Of
// the row on one task: with the settings of that cell.
std::string row_label(const Leaderboard& board, const Row& row, const std::string& settings);
std::string row_label(const Leaderboard& board, const Row& row);

// "36.42", "FAIL (50.02)", "diverged", "failed", "unfinished"; "not run" only when it was not.
std::string figure_text(const Cell& cell);
// "n=3, ±0.51, 1 diverged": seeds, Cell::interval and runs without a figure; empty without a run.
std::string spread_text(const Cell& cell);
// "±0.51"; empty without an interval.
std::string interval_text(const Cell& cell);
// "n=3"; empty for one seed.
std::string seeds_text(const Cell& cell);
// "1 diverged, 2 failed": runs without a figure; empty if there are none.
std::string lost_text(const Cell& cell);
// The name of a row and its figures with all of these.
TitledCells figures_line(const Leaderboard& board, const Row& row);

// "48 s", "3.1 min", "1.5 h", "2.3 days"; "53.1k"; "-" for nothing.
std::string time_text(std::optional<double> seconds);
std::string size_text(std::optional<int64_t> num_parameters);
std::string memory_text(std::optional<int64_t> bytes);    // "1.2 GB"
std::string gigabytes_text(std::optional<double> value);  // "1.20 GB"

// Removes those of the columns that are the same in every row. The caption then states what they
// say, unless it is nothing ("-").
void fold_columns(Table& table, std::initializer_list<const char*> titles);

// Removes the columns in which every row is "-" or empty, but for those that name the row.
void drop_empty_columns(Table& table);

// The meaning of the marks of the board's figures: a sentence for each that occurs, and for each
// task that some runs changed.
std::string marks_legend(const Leaderboard& board, bool with_signs = true);
// "§ small preset (Text, Image); ‡ 36.85 of root operator (ListOps)": the marks of a row's figures,
// with the tasks if there are several.
std::string marks_text(const Leaderboard& board, const Row& row);
// Adds a last column of such texts, one for each row of the table, unless all are empty.
void add_marks(Table& table, std::vector<std::string> texts);

// "-" for nothing; two decimals; "+0.40" for differences; "1.25x" for ratios.
std::string number_text(std::optional<double> value, int decimals, const char* unit = "");
std::string accuracy_text(std::optional<double> value);
std::string signed_text(std::optional<double> value);
std::string ratio_text(std::optional<double> value);
// "0.475", "12.34", "123.4", "12,345": speeds.
std::string rate_text(std::optional<double> value);

// Rank among the figures of a column that compare (are_ranked()), or among the averages of one
// preset: the best, the second, or neither. FAIL is not ranked, nor is a figure that is compared
// with none; self-pretrained rows are ranked among themselves.
Emphasis rank_in_column(const Leaderboard& board, const Row& row, size_t column);
Emphasis rank_of_average(const Leaderboard& board, const Row& row, Average Row::*average);

// The paper's row "Task Avg (Std)" of Tables 1, 6 and 7: how hard a task is, and how far the models
// lie apart on it.
struct TaskAverage {
  std::string name;  // "Task Avg (Std), release preset", "Task Avg (Std), paper v0"
  // One per column, over models; without meaning for fewer than two models.
  std::vector<Summary> cells = {};
  Summary scored = {};  // of the averages over the five tasks
};

// One for each preset with which two models have full runs of one task, then the paper's for both
// versions, computed from its rows. A model's best row counts; FAIL, diverged and shortened runs do
// not. Empty for a board without rows.
std::vector<TaskAverage> task_averages(const Leaderboard& board);

// "46.32 (4.60) [n=11]", with the sample standard deviation (n - 1); "-" for less than two models.
std::string task_average_text(const Summary& summary);

// Mean ± sample standard deviation over the seeds, the best of each column bold; without rows if
// there is no figure. Throws lra::Error for a column that is none.
Table results_table(const Leaderboard& board, const ResultsChoice& choice = {});

}  // namespace lra::report
