#include "report/tables/tables.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text_format.h"

namespace lra::report {
namespace {

constexpr const char* kName = "Task Avg (Std), ";

// The best figure of each model.
struct BestOfModels : std::map<std::string, double> {
  void add(const std::string& model, std::optional<double> value) {
    if (!value) return;
    double& best = try_emplace(model, *value).first->second;
    best = std::max(best, *value);
  }
  Summary summary() const {
    return summarize(mapped(*this, [](const auto& best) { return best.second; }));
  }
};

TaskAverage of_preset(const Leaderboard& board, const std::string& preset) {
  std::vector<BestOfModels> cells(board.columns.size());
  BestOfModels scored;
  for (const Row& row : board.rows) {
    if (row.preset != preset) continue;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!row.cells[i].fail) cells[i].add(row.model, row.cells[i].full_accuracy());
    }
    scored.add(row.model, row.scored.ours);
  }
  return {.name = kName + (preset.empty() ? "no" : preset) + " preset",
          .cells = mapped(cells, &BestOfModels::summary),
          .scored = scored.summary()};
}

// True if some runs of the column have the paper's task unchanged.
bool is_paper_task(const Leaderboard& board, size_t column) {
  return board.columns[column].paper && std::ranges::any_of(board.rows, [&](const Row& row) {
           return row.cells[column].was_run() && row.cells[column].task_changes.empty();
         });
}

TaskAverage of_paper(const Leaderboard& board, PaperVersion version) {
  TaskAverage result{.name = std::string(kName) +
                             (version == PaperVersion::kV0 ? "paper v0" : "paper v1")};
  for (size_t i = 0; i < board.columns.size(); ++i) {
    std::vector<double> values;
    for (const PaperModel& model : paper_models()) {
      const auto value = is_paper_task(board, i)
                             ? paper_accuracy(model, *board.columns[i].paper, version)
                             : std::nullopt;
      if (value) values.push_back(*value);
    }
    result.cells.push_back(summarize(values));
  }
  result.scored = summarize(mapped(
      paper_models(), [&](const PaperModel& model) { return paper_average(model, version); }));
  return result;
}

}  // namespace

std::vector<TaskAverage> task_averages(const Leaderboard& board) {
  std::vector<TaskAverage> found;
  std::set<std::string> presets;
  for (const Row& row : board.rows) {
    if (!presets.insert(row.preset).second) continue;
    TaskAverage average = of_preset(board, row.preset);
    const auto compares = [](const Summary& cell) { return cell.count > 1; };
    if (std::ranges::any_of(average.cells, compares)) found.push_back(std::move(average));
  }
  bool has_paper = false;
  for (size_t i = 0; i < board.columns.size(); ++i) has_paper |= is_paper_task(board, i);
  if (!has_paper) return found;
  found.push_back(of_paper(board, PaperVersion::kV0));
  found.push_back(of_paper(board, PaperVersion::kV1));
  return found;
}

std::string task_average_text(const Summary& summary) {
  if (!summary.deviation) return "-";
  return fixed(summary.mean, 2) + " (" + fixed(*summary.deviation, 2) +
         ") [n=" + std::to_string(summary.count) + "]";
}

}  // namespace lra::report
