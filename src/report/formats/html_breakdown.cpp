// Where models fail: small multiples, one panel a model, all with the same axes.
#include <algorithm>

#include "base/text_format.h"
#include "report/formats/chart.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/tables/breakdown.h"

namespace lra::report {
namespace {

constexpr size_t kMaxPanels = 12;  // of a figure: its table has all models

// A panel for each model, in which its seeds are lines.
std::vector<ChartPanel> panels_of(const BreakdownGrid& grid) {
  std::vector<ChartPanel> panels;
  for (const auto& [model, label, points] : grid.runs) {
    auto panel = std::ranges::find(panels, model, &ChartPanel::name);
    if (panel == panels.end()) panel = panels.insert(panel, ChartPanel{model, {}});
    auto& line = panel->lines.emplace_back();
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].num_examples == 0) continue;
      line.push_back({label + ", " + grid.groups[i], static_cast<double>(i), points[i].accuracy,
                      points[i].half_width, points[i].num_examples});
    }
  }
  return panels;
}

std::string figure_html(const BreakdownGrid& grid) {
  std::vector<ChartPanel> panels = panels_of(grid);
  std::string caption =
      "Percent, with 95 % intervals over the examples of each group; runs of one model together.";
  if (panels.size() > kMaxPanels) {
    caption += " The first " + std::to_string(kMaxPanels) + " of " + std::to_string(panels.size()) +
               " models; the table has all.";
    panels.resize(kMaxPanels);
  }
  return chart_figure(grid.title, caption, {panel_charts(panels, grid.groups, grid.is_ordered)},
                      bare_table_html(breakdown_table(grid)));
}

}  // namespace

std::string breakdown_html(const ReportInput& input) {
  std::string text;
  for (const BreakdownGrid& grid : breakdown_grids(input.analyses)) text += figure_html(grid);
  return text + table_html(class_table(input.analyses));
}

}  // namespace lra::report
