#include "report/tables/breakdown.h"

#include <algorithm>
#include <set>

#include "base/text_format.h"

namespace lra::report {
namespace {

constexpr size_t kMaxClasses = 20;  // of a chart or a row: more are told by macro F1

BreakdownPoint point_of(const BreakdownGroup& group) {
  const int64_t examples = group.num_examples;
  if (examples == 0) return {};
  const double accuracy =
      100 * static_cast<double>(group.num_correct) / static_cast<double>(examples);
  return {accuracy, binomial_half_width95(accuracy, examples), examples};
}

BreakdownFactor classes_as_factor(const BreakdownResult& breakdown) {
  BreakdownFactor factor{.name = "class", .groups = {}};
  if (breakdown.classes.size() > kMaxClasses) return factor;
  for (const BreakdownClass& c : breakdown.classes) {
    factor.groups.push_back({c.name, c.num_examples, c.num_correct});
  }
  return factor;
}

// The model, and what tells its analyses of one set of examples apart; without points.
BreakdownGrid::Run named_run(const std::vector<const AnalysisRecord*>& all,
                             const AnalysisRecord& record) {
  std::set<std::string> presets;
  std::set<uint64_t> seeds;
  for (const AnalysisRecord* other : all) {
    if (other->model_title != record.model_title || other->task != record.task) continue;
    presets.insert(other->preset);
    seeds.insert(other->seed);
  }
  const std::string model = record.model_title + (presets.size() > 1 ? ", " + record.preset : "");
  return {model, model + (seeds.size() > 1 ? ", seed " + std::to_string(record.seed) : ""), {}};
}

std::string share_text(std::optional<double> share) { return share ? fixed(100 * *share, 1) : "-"; }

}  // namespace

std::vector<BreakdownGrid> breakdown_grids(const std::vector<Analysis>& analyses) {
  const auto records = analyses_of(analyses, "breakdown");
  std::vector<BreakdownGrid> grids;
  for (const AnalysisRecord* record : records) {
    std::vector<BreakdownFactor> factors = record->breakdown->factors;
    factors.insert(factors.begin(), classes_as_factor(*record->breakdown));
    for (const BreakdownFactor& factor : factors) {
      if (factor.groups.empty()) continue;
      const std::string title =
          shown_task(*record) + ", " + record->split + ": accuracy by " + factor.name;
      const std::vector<std::string> names = mapped(factor.groups, &BreakdownGroup::name);
      auto grid = std::ranges::find_if(grids, [&](const BreakdownGrid& known) {
        return known.title == title && known.groups == names;
      });
      if (grid == grids.end()) {
        const bool is_ordered =
            factor.name != "class" && std::ranges::all_of(names, [](const std::string& name) {
              return !name.empty() && name[0] >= '0' && name[0] <= '9';
            });
        grids.push_back({title, names, is_ordered, {}});
        grid = grids.end() - 1;
      }
      grid->runs.push_back(named_run(records, *record));
      grid->runs.back().points = mapped(factor.groups, point_of);
    }
  }
  return grids;
}

Table breakdown_table(const BreakdownGrid& grid) {
  Table table{.title = grid.title,
              .caption = "Percent, ± the 95 % interval over the examples of the group.",
              .header = {"Model"}};
  table.header.insert(table.header.end(), grid.groups.begin(), grid.groups.end());
  for (const auto& [model, label, points] : grid.runs) {
    Cells& cells = table.rows.emplace_back(Cells{{label}});
    for (const BreakdownPoint& point : points) {
      cells.push_back({point.num_examples
                           ? fixed(point.accuracy, 1) + " ± " + fixed(point.half_width, 1)
                           : "-"});
    }
  }
  return table;
}

Table class_table(const std::vector<Analysis>& analyses) {
  Table table{.title = "Recall and precision",
              .caption =
                  "Macro F1: the mean over the classes. AUC: the area under the ROC curve, of two "
                  "classes. Of each class the recall and the precision, percent.",
              .num_left = 3,
              .num_keys = 2,
              .is_list = true,
              .num_right = 1};
  const auto records = analyses_of(analyses, "breakdown");
  for (const AnalysisRecord* record : records) {
    const BreakdownResult& breakdown = *record->breakdown;
    const auto classes = mapped(breakdown.classes, [](const BreakdownClass& c) {
      return c.name + ": " + share_text(c.recall()) + " / " + share_text(c.precision());
    });
    table.add(
        {{"Task", {shown_task(*record)}},
         {"Model", {named_run(records, *record).label}},
         {"Split", {record->split}},
         {"Macro F1", {fixed(breakdown.macro_f1, 4)}},
         {"AUC", {number_text(breakdown.auc, 4)}},
         {"Recall / precision", {classes.size() > kMaxClasses ? "-" : joined(classes, "; ")}}});
  }
  return table;
}

}  // namespace lra::report
