#include "report/tables/row_groups.h"

#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "base/text_format.h"

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
  for (const auto& [how, list] : {std::pair{"by several revisions: ", row.revisions},
                                  {"on several machines: ", row.machines}}) {
    if (list.find("; ") == std::string::npos) continue;  // one
    warnings.push_back(row.title + ": the runs of this row were made " + how + list);
  }
}

void add_run_warnings(const std::vector<RowGroup>& groups, std::vector<std::string>& warnings) {
  for (const RowGroup& group : groups) {
    for (const auto& [task, runs] : group.runs) {
      std::set<std::string> accepted;
      for (const RunRecord* run : runs) {
        warn_of_lost_run(group, *run, warnings);
        for (const CheckFinding& found : items_of(run->data_checks)) {
          if (found.accepted)
            accepted.insert(": accepted of its data: " + found.check + ": " + found.text);
        }
      }
      for (const std::string& text : accepted) warnings.push_back(cell_name(group, task) + text);
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

}  // namespace

void add_warnings(Leaderboard& board, const std::vector<RowGroup>& groups,
                  const std::vector<RunRecord>& records) {
  add_run_warnings(groups, board.warnings);
  for (size_t column = 0; column < board.columns.size(); ++column) {
    warn_of_different_data(board, column, records);
  }
  for (const Row& row : board.rows) warn_of_mixed_provenance(row, board.warnings);
  add_speed_warnings(board.speeds, board.warnings);
}

}  // namespace lra::report
