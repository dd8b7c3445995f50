#include "report/tables/leaderboard.h"

#include <algorithm>
#include <map>

#include "records/find_setting.h"
#include "report/tables/settings.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

// Figures of one task in percent, by data and length: a baseline of 4,000 bytes is another
// classifier than one of 1,000.
using TaskFigures = std::map<SettingLines, std::vector<double>>;
// name -> task
using Figures = std::map<std::string, std::map<std::string, TaskFigures>>;

void fill_listops(Figures& figures) {
  for (const auto& [name, value] :
       {std::pair{std::string("majority"), kListopsMajority},
        std::pair{std::string(kRootOperatorName), kListopsRootOperator}}) {
    auto& known = figures[name]["listops"];
    if (known.empty()) known[{}].push_back(value);
  }
}

std::optional<double> scored_average(const BaselineRow& row,
                                     const std::vector<TaskColumn>& columns) {
  std::vector<double> scored;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].is_scored() && row.accuracy[i]) scored.push_back(*row.accuracy[i]);
  }
  if (scored.size() != kNumScoredTasks) return std::nullopt;
  return summarize(scored).mean;
}

BaselineRow chance_row(const std::vector<TaskColumn>& columns) {
  BaselineRow row{.name = "chance"};
  for (const TaskColumn& column : columns) {
    std::optional<double>& chance = row.accuracy.emplace_back();
    if (column.paper) chance = kPaperChance[static_cast<size_t>(*column.paper)];
  }
  row.scored = scored_average(row, columns);
  return row;
}

std::string shown_name(const std::string& name) {
  return name == "root_operator" ? std::string(kRootOperatorName) : name;
}

// The facts that a run's trivial classifiers depend on.
SettingLines data_lines(const RunRecord& record) {
  SettingLines lines = {hash_line("data", record.data_hash)};
  if (const auto length = find_setting_as<int64_t>(record.config, "task", "length")) {
    lines.insert("length=" + std::to_string(*length));
  }
  return lines;
}

Figures found_figures(const std::vector<RunRecord>& records) {
  Figures figures;
  bool has_listops = false;
  for (const RunRecord& record : records) {
    if (record.kind != "train") continue;
    has_listops = has_listops || record.task == "listops";
    for (const auto& [name, accuracy] : record.baselines) {
      figures[shown_name(name)][record.task][data_lines(record)].push_back(100 * accuracy);
    }
  }
  if (has_listops) fill_listops(figures);
  return figures;
}

// Rows of one baseline: the tasks of one setting under its name, then one row for each setting of
// a task that has several.
std::vector<BaselineRow> rows_of(const std::string& name,
                                 const std::map<std::string, TaskFigures>& tasks,
                                 const std::vector<TaskColumn>& columns) {
  std::map<std::string, BaselineRow> rows;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto found = tasks.find(columns[i].task);
    if (found == tasks.end()) continue;
    for (const auto& [lines, label] : labels_apart(found->second)) {
      const std::string shown =
          label.empty() ? name : name + " (" + columns[i].task + ": " + label + ")";
      BaselineRow& row = rows[shown];
      row.name = shown;
      row.accuracy.resize(columns.size());
      row.accuracy[i] = summarize(found->second.at(lines)).mean;
    }
  }
  for (auto& [shown, row] : rows) row.scored = scored_average(row, columns);
  return mapped(rows, [](const auto& entry) { return entry.second; });
}

// Null if none has a figure there.
const BaselineRow* best_baseline(const Leaderboard& board, size_t column) {
  const BaselineRow* best = nullptr;
  for (const BaselineRow& row : board.baselines) {
    const std::optional<double> accuracy = row.accuracy[column];
    if (accuracy && (!best || *accuracy > *best->accuracy[column])) best = &row;
  }
  return best;
}

}  // namespace

std::vector<BaselineRow> find_baselines(const std::vector<RunRecord>& records,
                                        const std::vector<TaskColumn>& columns) {
  std::vector<BaselineRow> rows;
  for (const auto& [name, tasks] : found_figures(records)) {
    std::ranges::move(rows_of(name, tasks, columns), std::back_inserter(rows));
  }
  if (!columns.empty()) rows.push_back(chance_row(columns));
  return rows;
}

BaselineRow best_of_baselines(const Leaderboard& board, const std::string& name) {
  BaselineRow best{.name = name};
  for (size_t i = 0; i < board.columns.size(); ++i) {
    const BaselineRow* row = best_baseline(board, i);
    best.accuracy.push_back(row ? row->accuracy[i] : std::nullopt);
  }
  return best;
}

Trivial best_trivial(const Leaderboard& board, size_t column, const Cell& cell,
                     const std::vector<RunRecord>& records) {
  std::map<std::string, std::vector<double>> recorded;
  for (const size_t run : cell.runs) {
    for (const auto& [name, accuracy] : records[run].baselines) {
      recorded[shown_name(name)].push_back(100 * accuracy);
    }
  }
  Trivial best;
  for (const auto& [name, values] : recorded) {
    best = std::max(best, {summarize(values).mean, name});
  }
  if (const BaselineRow* row = best_baseline(board, column); row && recorded.empty()) {
    best = {*row->accuracy[column], row->name};
  }
  return best;
}

}  // namespace lra::report
