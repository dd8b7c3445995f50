#include "report/tables/curves.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"
#include "report/formats/chart.h"
#include "report/formats/html_parts.h"

namespace lra::report {
namespace {

constexpr size_t kMostPoints = 1000;  // two for each pixel column, for those who look closer

struct Curve {
  std::string run;
  std::vector<Evaluation> points;
  int style = 0;
};

// Names in the legend: the title, with the preset where the report holds several. In the order of
// the leaderboard, so that a model keeps its style in every chart.
class CurveNames {
 public:
  CurveNames(const std::vector<RunRecord>& records, const Leaderboard& board) {
    for (const Row& row : board.rows) several_presets_ |= row.preset != board.rows[0].preset;
    for (const Row& row : board.rows) {
      for (const RunRecord& run : records) {
        if (run.model == row.model && run.preset == row.preset) (void)style_of(run);
      }
    }
  }
  std::string name_of(const RunRecord& run) const {
    return several_presets_ ? run.model_title + ", " + run.preset : run.model_title;
  }
  int style_of(const RunRecord& run) {
    const std::string name = name_of(run);
    const auto found = std::find(all_.begin(), all_.end(), name);
    const auto style = static_cast<int>(found - all_.begin());
    if (found == all_.end()) all_.push_back(name);
    return style;
  }
  std::vector<LegendEntry> legend(const std::vector<Curve>& curves) const {
    std::vector<LegendEntry> entries;
    for (int style = 0; style < static_cast<int>(all_.size()); ++style) {
      const bool is_used = std::any_of(curves.begin(), curves.end(),
                                       [&](const Curve& curve) { return curve.style == style; });
      if (is_used) entries.push_back({all_[static_cast<size_t>(style)], style});
    }
    return entries;
  }

 private:
  bool several_presets_ = false;
  std::vector<std::string> all_;
};

const Evaluation& highest(const std::vector<Evaluation>& points) {
  return *std::max_element(points.begin(), points.end(),
                           [](const auto& a, const auto& b) { return a.accuracy < b.accuracy; });
}

std::string description(const std::vector<Curve>& curves) {
  const auto best =
      std::max_element(curves.begin(), curves.end(), [](const Curve& a, const Curve& b) {
        return highest(a.points).accuracy < highest(b.points).accuracy;
      });
  const Evaluation& top = highest(best->points);
  return "Validation accuracy against training step for " + std::to_string(curves.size()) +
         (curves.size() == 1 ? " run" : " runs") + ". The highest is " + best->run + ", " +
         fixed(100 * top.accuracy, 2) + " % at step " + thousands(top.step) + ".";
}

std::string end_points(const std::vector<Curve>& curves) {
  Table table{.title = "End points",
              .caption = "",
              .header = {"Run", "highest, %", "at step", "last, %", "at step"},
              .rows = {}};
  for (const Curve& curve : curves) {
    std::vector<TableCell> cells = {{curve.run}};
    for (const Evaluation& point : {highest(curve.points), curve.points.back()}) {
      cells.push_back({fixed(100 * point.accuracy, 2)});
      cells.push_back({thousands(point.step)});
    }
    table.rows.push_back(std::move(cells));
  }
  return bare_table_html(table);
}

std::string figure_html(const std::string& task, const std::vector<Curve>& curves,
                        const std::vector<LegendEntry>& legend) {
  std::vector<ChartLine> lines;
  for (const Curve& curve : curves) {
    lines.push_back({.name = curve.run, .points = {}, .style = curve.style});
    for (const Evaluation& point : curve.points) {
      lines.back().points.push_back({static_cast<double>(point.step), 100 * point.accuracy});
    }
  }
  return chart_figure(task + ", validation accuracy, %", "",
                      {line_chart(description(curves), lines) + legend_html(legend)},
                      end_points(curves));
}

}  // namespace

std::vector<Evaluation> thinned_curve(const std::vector<Evaluation>& curve, size_t most) {
  std::vector<Evaluation> points;
  for (const Evaluation& point : curve) {
    if (std::isfinite(point.accuracy)) points.push_back(point);
  }
  if (points.size() <= most) return points;
  const auto lower = [](const auto& a, const auto& b) { return a.accuracy < b.accuracy; };
  const size_t stretch = (2 * points.size() + most - 1) / most;
  std::vector<Evaluation> kept = {points.front()};
  for (size_t begin = 1; begin + 1 < points.size(); begin += stretch) {
    const size_t end = std::min(begin + stretch, points.size() - 1);
    auto [low, high] =
        std::minmax_element(points.begin() + static_cast<std::ptrdiff_t>(begin),
                            points.begin() + static_cast<std::ptrdiff_t>(end), lower);
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  kept.push_back(points.back());
  return kept;
}

std::string curves_html(const std::vector<RunRecord>& records, const Leaderboard& board) {
  CurveNames names(records, board);
  std::string text;
  for (const TaskColumn& column : board.columns) {
    std::vector<Curve> curves;
    for (const RunRecord& run : records) {
      if (run.task != column.task || run.kind != "train") continue;
      std::vector<Evaluation> points = thinned_curve(run.val_curve, kMostPoints);
      if (points.empty()) continue;
      curves.push_back({names.name_of(run) + ", seed " + std::to_string(run.seed),
                        std::move(points), names.style_of(run)});
    }
    if (!curves.empty()) text += figure_html(column.title, curves, names.legend(curves));
  }
  return text;
}

}  // namespace lra::report
