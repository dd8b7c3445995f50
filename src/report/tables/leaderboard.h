// Builds the leaderboard from run records: rows, averages, comparisons, warnings. All accuracies
// are in percent. "Nothing" is std::nullopt throughout; 0 is never used for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/tables/paper_tables.h"
#include "report/tables/run_facts.h"
#include "report/tables/speed.h"
#include "report/tables/statistics.h"

namespace lra::report {

struct TaskColumn {
  std::string task, title;
  int64_t version = 0;
  std::optional<PaperTask> paper;  // nothing for a task the paper does not have

  // True for a task of the paper's average.
  bool is_scored() const { return paper && *paper != PaperTask::kPathX; }
};

// A classifier that needs no model.
struct Trivial {
  double accuracy = 0;
  std::string name;  // empty: none
  auto operator<=>(const Trivial&) const = default;
};

// The runs of one row on one task.
struct Cell {
  Summary accuracy;  // test accuracy over the finished runs (count 0: none finished)
  // Half-width of the 95 % interval: the wider of that over seeds and that of the test set's size.
  std::optional<double> interval;
  int num_diverged = 0, num_failed = 0, num_unfinished = 0;
  bool fail = false;  // Path-X only: no finished run learned anything (see leaderboard.cpp)
  // "100 of 5,000 steps": how the runs fall short of full ones (shortfall_of), separated by "; ";
  // empty for full ones. Their steps.
  std::string shortfall;
  std::set<int64_t> steps;
  bool is_published = true;             // all of a published setting: RunRecord::published_setting
  std::string task_changes, departure;  // as run_facts.h has them
  // The facts that ranked runs share, beside their budget: preset, data and how much of it is
  // used.
  std::string setting;
  Trivial trivial;  // the best one on the cell's data
  Marks marks;      // with the reasons of all runs
  // The figures of the paper, if its task is unchanged.
  std::optional<double> paper_v0, paper_v1;
  bool paper_fail = false;
  // Settings that only these runs of the model, preset and task have; often empty.
  std::string settings;
  std::string validation, division;
  std::optional<int64_t> num_parameters;
  std::optional<double> train_seconds;  // only training steps, mean over the finished runs
  CellSpeed speed;
  std::string devices;       // every one that computed a run, "; " between
  bool on_gpu = false;       // some run was
  std::vector<size_t> runs;  // their places among the records

  bool was_run() const { return accuracy.count + num_diverged + num_failed + num_unfinished > 0; }
  // The figure that is shown.
  std::optional<double> shown_accuracy() const {
    if (accuracy.count == 0) return std::nullopt;
    return accuracy.mean;
  }
  // Empty without such a mark.
  std::string reason(MarkKind kind) const {
    const auto found = std::ranges::find(marks, kind, &Mark::kind);
    return found == marks.end() ? "" : found->reason;
  }
  bool has(MarkKind kind) const { return !reason(kind).empty(); }
  // The figure that may be averaged over tasks: that of full runs, not on suspect data.
  std::optional<double> full_accuracy() const {
    return shortfall.empty() && !has(MarkKind::kSuspect) ? shown_accuracy() : std::nullopt;
  }
  // The figure that may be set against the paper.
  std::optional<double> compared_accuracy() const {
    return is_published && task_changes.empty() ? full_accuracy() : std::nullopt;
  }
};

// True if the figures of two cells of a column may be ranked: both have one, the settings are the
// same, and so is the budget, which is the preset's own or a number of steps.
bool are_ranked(const Cell& a, const Cell& b);

// An average over tasks, each part present only when all its parts exist.
struct Average {
  std::optional<double> ours, paper_v0, paper_v1;
  std::optional<double> compared;  // our figure if it may be compared with the paper
};

// The facts that all runs of a row share.
struct RowHead {
  std::string model, preset, checkpoint;
  // The division of all runs; stated in the title; ranked only among such rows.
  bool is_self_pretrained = false;
  // Settings that set this row apart from others of the same model and preset ("mixer.rank=128"),
  // or which of several settings a task of this row was run with ("text: mixer.rank=256"), and
  // those of controls. Often empty.
  std::string settings;
  auto operator<=>(const RowHead&) const = default;
};

struct Row : RowHead {
  std::string title = {};
  std::string validation = {}, division = {};  // "own; text: test" where tasks differ
  std::string revisions = {}, machines = {};   // every one that occurs, "; " between
  std::vector<Cell> cells = {};                // one per column
  Average scored = {};                         // the paper's: the five tasks without Path-X
  Average present = {};                        // all columns of this report
};

// A trivial classifier, which a model has to beat.
struct BaselineRow {
  std::string name;
  std::vector<std::optional<double>> accuracy = {};  // one per column
  std::optional<double> scored = {};
};

struct Leaderboard {
  std::vector<TaskColumn> columns;  // the paper's order, then by name
  // Best average first; rows without one by their points above the best trivial baseline, summed
  // over tasks; then short runs, those of one setting and budget together, ordered in the same way.
  std::vector<Row> rows;
  std::vector<BaselineRow> baselines;
  std::vector<SpeedRow> speeds;
  std::vector<std::string> warnings;
  int num_runs = 0;         // training records, repetitions included
  size_t first_record = 0;  // place among the report's records of the one that Cell::runs calls 0
};

// True if some figure is of a published setting.
bool has_published(const Leaderboard& board);

// True if `is` holds for some cell.
template <typename Predicate>
bool any_cell(const Leaderboard& board, const Predicate& is) {
  return std::ranges::any_of(board.rows,
                             [&](const Row& row) { return std::ranges::any_of(row.cells, is); });
}

// Throws lra::Error when the records hold two versions of one task.
Leaderboard build_leaderboard(const std::vector<RunRecord>& records);

// The paper's name of the task, for one that it does not have our title.
std::string shown_task(const RunIdentity& run);

// Ours minus the paper's, if both exist.
std::optional<double> difference(std::optional<double> ours, std::optional<double> paper);

inline constexpr std::string_view kRootOperatorName = "root operator";

// One row per baseline name in the records ("majority"), in percent. If a task was run on several
// sets of data or at several lengths, each of them has a row that names it. ListOps figures the
// records lack are filled in with those of paper_tables.h. The last row is the paper's chance row.
std::vector<BaselineRow> find_baselines(const std::vector<RunRecord>& records,
                                        const std::vector<TaskColumn>& columns);

// A row of the best of each column.
BaselineRow best_of_baselines(const Leaderboard& board, const std::string& name);
// The best trivial classifier in the records of a cell's runs or, if they have none, of its column.
Trivial best_trivial(const Leaderboard& board, size_t column, const Cell& cell,
                     const std::vector<RunRecord>& records);

}  // namespace lra::report
