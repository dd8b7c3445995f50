#include "report/warnings.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/text_format.h"
#include "report/baselines.h"
#include "report/run_facts.h"

namespace lra::report {
namespace {

std::string cell_name(const RowGroup& group, const std::string& task) {
  return group.model + " on " + task;
}

void warn_of_lost_run(const RowGroup& group, const RunRecord& run,
                      std::vector<std::string>& warnings) {
  const bool diverged = run.status == RunStatus::kDiverged;
  if (!diverged && run.status != RunStatus::kFailed) return;
  std::string text = cell_name(group, run.task) + ", seed " + std::to_string(run.seed) +
                     (diverged ? ": diverged" : ": failed") + " at step " +
                     std::to_string(run.steps);
  if (!run.failure.empty()) text += ": " + run.failure;
  warnings.push_back(text);
}

// Examples of the tasks of the paper, in the order of PaperTask. Text has no validation set.
constexpr SplitSizes kTaskSizes[kNumPaperTasks] = {
    {.train = 96000, .val = 2000, .test = 2000},    {.train = 25000, .val = 0, .test = 25000},
    {.train = 147086, .val = 18090, .test = 17437}, {.train = 45000, .val = 5000, .test = 10000},
    {.train = 160000, .val = 20000, .test = 20000}, {.train = 160000, .val = 20000, .test = 20000}};

void warn_of_size(const RowGroup& group, const RunRecord& run, std::vector<std::string>& warnings) {
  const auto paper = paper_task(run.task);
  if (!paper || !run.data_examples || !has_figure(run)) return;
  const SplitSizes &own = *run.data_examples, &usual = kTaskSizes[static_cast<size_t>(*paper)];
  // The archive of Pathfinder lacks one image of 200,000.
  const auto differs = [](int64_t a, int64_t b) { return std::abs(a - b) > b / 1000; };
  if (!differs(own.train, usual.train) && !differs(own.test, usual.test)) return;
  warnings.push_back(cell_name(group, run.task) + ", seed " + std::to_string(run.seed) +
                     ": of data of " + thousands(own.train) + " training and " +
                     thousands(own.test) + " test examples; the task has " +
                     thousands(usual.train) + " and " + thousands(usual.test));
}

// The accuracy of knowing only the root operator, as this report shows it.
double root_operator_accuracy(const Leaderboard& board, size_t column) {
  for (const BaselineRow& row : board.baselines) {
    if (row.name == kRootOperatorName && row.accuracy[column]) return *row.accuracy[column];
  }
  return kListopsRootOperator;
}

void warn_of_root_operator(Leaderboard& board, size_t column) {
  const double root = root_operator_accuracy(board, column);
  for (const Row& row : board.rows) {
    const Cell& cell = row.cells[column];
    if (cell.accuracy.count == 0) continue;
    if (std::abs(cell.accuracy.mean - root) > cell.interval.value_or(0)) continue;
    board.warnings.push_back(row.title + " on ListOps: " + fixed(cell.accuracy.mean, 2) +
                             " % (95 % interval +/- " + fixed(cell.interval.value_or(0), 2) +
                             ") cannot be told from the " + fixed(root, 1) +
                             " % that reading only the root operator gives");
  }
}

void warn_of_shortfalls(Leaderboard& board, size_t column) {
  std::map<std::string, int> counts;
  for (const Row& row : board.rows) {
    if (!row.cells[column].shortfall.empty()) ++counts[row.cells[column].shortfall];
  }
  for (const auto& [shortfall, count] : counts) {
    board.warnings.push_back(board.columns[column].title + ": " + std::to_string(count) +
                             (count == 1 ? " figure is of " : " figures are of ") + shortfall +
                             "; marked †, in no average, and not compared with the paper");
  }
}

// The name of the small preset is explanation enough.
void warn_of_other_settings(Leaderboard& board, size_t column) {
  int count = 0;
  for (const Row& row : board.rows) {
    const Cell& cell = row.cells[column];
    count += cell.full_accuracy() && !cell.is_published && row.preset != "small";
  }
  if (count == 0) return;
  board.warnings.push_back(
      board.columns[column].title + ": " + std::to_string(count) +
      (count == 1 ? " figure is" : " figures are") +
      " of settings or data that nobody published; not compared with the paper");
}

void warn_of_different_data(Leaderboard& board, size_t column,
                            const std::vector<RunRecord>& records) {
  std::set<std::string> hashes;
  for (const Row& row : board.rows) {
    if (row.cells[column].accuracy.count == 0) continue;
    for (const size_t run : row.cells[column].runs) hashes.insert(records.at(run).data_hash);
  }
  if (hashes.size() < 2) return;
  board.warnings.push_back(board.columns[column].title + ": the figures of this column are of " +
                           std::to_string(hashes.size()) + " different sets of data");
}

void warn_of_mixed_provenance(const Row& row, std::vector<std::string>& warnings) {
  const auto several = [](const std::string& list) { return list.find("; ") != list.npos; };
  if (several(row.revisions)) {
    warnings.push_back(row.title +
                       ": the runs of this row were made by several revisions: " + row.revisions);
  }
  if (several(row.machines)) {
    warnings.push_back(row.title +
                       ": the runs of this row were made on several machines: " + row.machines);
  }
}

}  // namespace

void add_run_warnings(const std::vector<RowGroup>& groups, std::vector<std::string>& warnings) {
  for (const RowGroup& group : groups) {
    for (const auto& [task, runs] : group.runs) {
      for (const RunRecord* run : runs) {
        warn_of_lost_run(group, *run, warnings);
        warn_of_size(group, *run, warnings);
      }
      if (runs.front()->validation == "test" && group.checkpoint == "best") {
        warnings.push_back(cell_name(group, task) +
                           ": the weights were chosen on the test set, so its figure is too high");
      }
    }
  }
}

void add_speed_warnings(const std::vector<SpeedRow>& speeds, std::vector<std::string>& warnings) {
  std::map<std::string, std::pair<std::string, int>> kinds;  // by the words of the warning
  for (const SpeedRow& row : speeds) {
    const Measurement& m = row.measured;
    if (!m.warning) continue;
    std::string words = *m.warning;
    std::erase_if(words, [](unsigned char c) { return !std::isalpha(c); });
    auto& [first, count] = kinds[words];
    if (++count > 1) continue;
    first = "speed of " + row.title + " on " + row.task + ", " + m.mode + " at length " +
            thousands(m.length) + ": " + *m.warning;
  }
  for (const auto& [words, kind] : kinds) {
    const auto& [first, count] = kind;
    warnings.push_back(first + (count > 1
                                    ? "; the same, with other figures, of " + thousands(count - 1) +
                                          " more marked ! in the tables"
                                    : ""));
  }
}

void add_row_warnings(Leaderboard& board, const std::vector<RunRecord>& records) {
  for (size_t column = 0; column < board.columns.size(); ++column) {
    warn_of_shortfalls(board, column);
    warn_of_other_settings(board, column);
    warn_of_different_data(board, column, records);
    if (board.columns[column].paper == PaperTask::kListops) warn_of_root_operator(board, column);
  }
  for (const Row& row : board.rows) warn_of_mixed_provenance(row, board.warnings);
}

}  // namespace lra::report
