#include "report/baselines.h"

#include <map>

namespace lra::report {
namespace {

// name -> task -> every figure met, in percent
using Figures = std::map<std::string, std::map<std::string, std::vector<double>>>;

void fill_listops(Figures& figures) {
  for (const auto& [name, value] :
       {std::pair{std::string("majority"), kListopsMajority},
        std::pair{std::string(kRootOperatorName), kListopsRootOperator}}) {
    auto& known = figures[name]["listops"];
    if (known.empty()) known.push_back(value);
  }
}

std::optional<double> scored_average(const BaselineRow& row,
                                     const std::vector<TaskColumn>& columns) {
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].paper || *columns[i].paper == PaperTask::kPathX || !row.accuracy[i]) continue;
    sum += *row.accuracy[i];
    ++count;
  }
  if (count != kNumScoredTasks) return std::nullopt;
  return sum / count;
}

BaselineRow chance_row(const std::vector<TaskColumn>& columns) {
  BaselineRow row{.name = "chance", .accuracy = {}, .scored = std::nullopt};
  for (const TaskColumn& column : columns) {
    row.accuracy.push_back(column.paper
                               ? std::optional(kPaperChance[static_cast<size_t>(*column.paper)])
                               : std::nullopt);
  }
  row.scored = scored_average(row, columns);
  return row;
}

}  // namespace

std::vector<BaselineRow> find_baselines(const std::vector<RunRecord>& records,
                                        const std::vector<TaskColumn>& columns) {
  Figures figures;
  bool has_listops = false;
  for (const RunRecord& record : records) {
    if (record.kind != "train") continue;
    has_listops = has_listops || record.task == "listops";
    for (const auto& [name, accuracy] : record.baselines) {
      const std::string shown = name == "root_operator" ? std::string(kRootOperatorName) : name;
      figures[shown][record.task].push_back(100 * accuracy);
    }
  }
  if (has_listops) fill_listops(figures);
  std::vector<BaselineRow> rows;
  for (const auto& [name, tasks] : figures) {
    BaselineRow row{.name = name, .accuracy = {}, .scored = std::nullopt};
    for (const TaskColumn& column : columns) {
      const auto found = tasks.find(column.task);
      row.accuracy.push_back(found == tasks.end() ? std::nullopt
                                                  : std::optional(summarize(found->second).mean));
    }
    row.scored = scored_average(row, columns);
    rows.push_back(std::move(row));
  }
  if (!columns.empty()) rows.push_back(chance_row(columns));
  return rows;
}

}  // namespace lra::report
