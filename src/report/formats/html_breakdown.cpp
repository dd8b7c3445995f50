// Where models fail: small multiples, one panel a model, all with the same axes.
#include <algorithm>

#include "base/text_format.h"
#include "report/formats/chart.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/tables/breakdown.h"

namespace lra::report {
namespace {

constexpr size_t kMostPanels = 12;  // of a figure: its table has all models

std::string figure_html(const BreakdownGrid& grid) {
  std::vector<ChartPanel> panels;
  for (const auto& [model, points] : grid.models) {
    if (panels.size() == kMostPanels) break;
    ChartPanel& panel = panels.emplace_back(ChartPanel{model, {}});
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].num_examples == 0) continue;
      panel.points.push_back({grid.groups[i], static_cast<double>(i), points[i].accuracy,
                              points[i].half_width, points[i].num_examples});
    }
  }
  const size_t left_out = grid.models.size() - panels.size();
  return chart_figure(
      grid.title,
      "Percent, with 95 % intervals over the examples of each group." +
          (left_out > 0 ? " The first " + std::to_string(kMostPanels) + " of " +
                              std::to_string(grid.models.size()) + " models; the table has all."
                        : ""),
      {panel_charts(panels, grid.groups)}, bare_table_html(breakdown_table(grid)));
}

}  // namespace

std::string breakdown_html(const ReportInput& input) {
  std::string text;
  for (const BreakdownGrid& grid : breakdown_grids(input.analyses)) text += figure_html(grid);
  return text + table_html(class_table(input.analyses));
}

}  // namespace lra::report
