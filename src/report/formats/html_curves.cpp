// Learning curves.
#include <algorithm>

#include "base/counted.h"
#include "records/find_setting.h"
#include "report/formats/chart.h"
#include "report/formats/html_parts.h"

namespace lra::report {
namespace {

const Evaluation& highest(const std::vector<Evaluation>& points) {
  return *std::ranges::max_element(points, {}, &Evaluation::accuracy);
}

std::string curves_description(const std::vector<Curve>& curves) {
  const auto best = std::ranges::max_element(
      curves, {}, [](const Curve& curve) { return highest(curve.points).accuracy; });
  const Evaluation& top = highest(best->points);
  return "Validation accuracy against training step for " +
         counted(static_cast<int64_t>(curves.size()), "run") + ". The highest is " + best->name +
         ", " + fixed(100 * top.accuracy, 2) + " % at step " + thousands(top.step) + ".";
}

Table end_points(const std::vector<Curve>& curves) {
  Table table{.title = "End points",
              .caption = "",
              .header = {"Run", "highest, %", "at step", "last, %", "at step"}};
  for (const Curve& curve : curves) {
    Cells& cells = table.rows.emplace_back(Cells{{curve.name}});
    for (const Evaluation& point : {highest(curve.points), curve.points.back()}) {
      cells.push_back({fixed(100 * point.accuracy, 2)});
      cells.push_back({thousands(point.step)});
    }
  }
  return table;
}

}  // namespace

std::string curves_html(const std::vector<RunRecord>& records, const Leaderboard& board) {
  const bool several_presets = std::ranges::any_of(
      board.rows, [&](const Row& row) { return row.preset != board.rows[0].preset; });
  const auto name_of = [&](const RunRecord& run) {
    return several_presets ? run.model_title + ", " + run.preset : run.model_title;
  };
  // Styles follow the order of the leaderboard, so that a model keeps its style in every chart.
  std::vector<LegendEntry> legend;
  const auto style_of = [&](const RunRecord& run) {
    const auto known = std::ranges::find(legend, name_of(run), &LegendEntry::name);
    if (known != legend.end()) return known->style;
    const int style = static_cast<int>(legend.size());
    legend.push_back({name_of(run), style});
    return style;
  };
  for (const Row& row : board.rows) {
    for (const RunRecord& run : records) {
      if (run.model == row.model && run.preset == row.preset) (void)style_of(run);
    }
  }
  std::string text;
  for (const TaskColumn& column : board.columns) {
    std::vector<Curve> curves;
    for (const RunRecord& run : records) {
      const bool has_labels = run.kind == "train" && !is_masked_run(run.config);
      if (run.task != column.task || !has_labels) continue;
      std::vector<Evaluation> points = learning_curve(run);
      if (points.empty()) continue;
      curves.push_back(
          {name_of(run) + ", seed " + std::to_string(run.seed), std::move(points), style_of(run)});
    }
    if (curves.empty()) continue;
    std::vector<LegendEntry> shown = legend;
    std::erase_if(shown, [&](const LegendEntry& entry) {
      return std::ranges::find(curves, entry.style, &Curve::style) == curves.end();
    });
    text += chart_figure(column.title + ", validation accuracy, %", "",
                         {line_chart(curves_description(curves), curves) + legend_html(shown)},
                         end_points(curves));
  }
  return text;
}

}  // namespace lra::report
