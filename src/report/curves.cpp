#include "report/curves.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"
#include "report/charts.h"
#include "report/html_assets.h"
#include "report/markup.h"

namespace lra::report {
namespace {

constexpr double kWidth = 560, kHeight = 300;
constexpr double kLeft = 46, kRight = 24, kTop = 12, kBottom = 44;
constexpr size_t kMostPoints = 500;  // about one per pixel column of the plot
// Of the chart of the page's script, which can be looked into: 100 KB a curve.
constexpr size_t kMostChartPoints = 4000;

struct Curve {
  std::string name;
  uint64_t seed = 0;
  std::vector<Evaluation> points;
  std::vector<Evaluation> chart_points;
  int style = 0;  // place of its name in the legend

  std::string run_name() const { return name + ", seed " + std::to_string(seed); }
};

struct Chart {
  const TaskColumn* column;
  std::vector<Curve> curves;
  std::vector<std::string> legend;
  std::vector<double> steps, percents;  // ticks

  double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * step / steps.back(); }
  double y(double percent) const {
    const double part = (percent - percents.front()) / (percents.back() - percents.front());
    return kHeight - kBottom - (kHeight - kTop - kBottom) * part;
  }
};

std::string style_class(int style) {
  return "c" + std::to_string(style % kNumCurveColors) + " d" +
         std::to_string(style / kNumCurveColors % kNumCurveDashes);
}

// The title, with the preset where the report holds several.
class CurveNames {
 public:
  CurveNames(const std::vector<RunRecord>& records, const Leaderboard& board) {
    for (const Row& row : board.rows) several_presets_ |= row.preset != board.rows[0].preset;
    // In the order of the leaderboard, so that a model keeps its colour in every chart.
    for (const Row& row : board.rows) {
      for (const RunRecord& run : records) {
        if (run.model != row.model || run.preset != row.preset) continue;
        const std::string name = name_of(run);
        if (std::find(all_.begin(), all_.end(), name) == all_.end()) all_.push_back(name);
      }
    }
  }
  std::string name_of(const RunRecord& run) const {
    const std::string title = run.model_title.empty() ? run.model : run.model_title;
    return several_presets_ && !run.preset.empty() ? title + ", " + run.preset : title;
  }
  int style_of(const std::string& name) const {
    return static_cast<int>(std::find(all_.begin(), all_.end(), name) - all_.begin());
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  bool several_presets_ = false;
  std::vector<std::string> all_;
};

void set_ticks(Chart& chart) {
  double low = 100, high = 0, last = 1;
  for (const Curve& curve : chart.curves) {
    for (const Evaluation& point : curve.points) {
      low = std::min(low, 100 * point.accuracy);
      high = std::max(high, 100 * point.accuracy);
      last = std::max(last, static_cast<double>(point.step));
    }
  }
  // A flat curve still needs some height; one point is less than the noise of any task.
  if (high - low < 1) {
    low -= 0.5;
    high += 0.5;
  }
  chart.percents = axis_ticks(low, high);
  chart.steps = axis_ticks(0, last);
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + fixed(value, 1) + "\"";
}

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
  return std::string("<line class=\"") + kind + "\"" + attribute("x1", x1) + attribute("y1", y1) +
         attribute("x2", x2) + attribute("y2", y2) + "/>";
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\">" +
         html(text) + "</text>";
}

std::string tick_text(double value) {
  if (value >= 1e6) return fixed(value / 1e6, std::fmod(value, 1e6) == 0 ? 0 : 1) + "M";
  if (value >= 1e4) return fixed(value / 1e3, std::fmod(value, 1e3) == 0 ? 0 : 1) + "K";
  return fixed(value, std::floor(value) == value ? 0 : 1);
}

std::string axes_svg(const Chart& chart) {
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  std::string svg;
  for (const double percent : chart.percents) {
    const double y = chart.y(percent);
    svg += line("grid", kLeft, y, right, y) + label(kLeft - 8, y + 4, "end", tick_text(percent));
  }
  svg += line("axis", kLeft, bottom, right, bottom);
  for (const double step : chart.steps) {
    const double x = chart.x(step);
    svg +=
        line("axis", x, bottom, x, bottom + 4) + label(x, bottom + 18, "middle", tick_text(step));
  }
  return svg + label((kLeft + right) / 2, kHeight - 6, "middle", "training step") + "\n";
}

std::string curve_svg(const Chart& chart, const Curve& curve) {
  std::string path;
  for (const Evaluation& point : curve.points) {
    path += (path.empty() ? "M" : "L") + fixed(chart.x(static_cast<double>(point.step)), 1) + " " +
            fixed(chart.y(100 * point.accuracy), 1);
  }
  // A path of one point draws nothing; a zero-length line with round ends draws a dot.
  const bool single = curve.points.size() == 1;
  if (single) path += "h0";
  return "<path class=\"curve " + style_class(curve.style) + (single ? " dot" : "") + "\" d=\"" +
         path + "\"><title>" + html(curve.run_name()) + "</title></path>\n";
}

const Evaluation& highest(const std::vector<Evaluation>& points) {
  return *std::max_element(points.begin(), points.end(),
                           [](const auto& a, const auto& b) { return a.accuracy < b.accuracy; });
}

std::string description(const Chart& chart) {
  const auto best = std::max_element(
      chart.curves.begin(), chart.curves.end(), [](const Curve& a, const Curve& b) {
        return highest(a.points).accuracy < highest(b.points).accuracy;
      });
  const Evaluation& top = highest(best->points);
  return "Validation accuracy against training step for " + std::to_string(chart.curves.size()) +
         (chart.curves.size() == 1 ? " run" : " runs") + ". The highest is " + best->run_name() +
         ", " + fixed(100 * top.accuracy, 2) + " % at step " + thousands(top.step) + ".";
}

std::string legend_html(const Chart& chart) {
  std::string text = "<ul class=\"legend static\">";
  for (size_t i = 0; i < chart.legend.size(); ++i) {
    const auto uses = std::any_of(chart.curves.begin(), chart.curves.end(),
                                  [&](const Curve& c) { return c.style == static_cast<int>(i); });
    if (!uses) continue;
    text += "<li><svg viewBox=\"0 0 22 8\" aria-hidden=\"true\"><path class=\"curve " +
            style_class(static_cast<int>(i)) + "\" d=\"M1 4h20\"/></svg>" + html(chart.legend[i]) +
            "</li>";
  }
  return text + "</ul>\n";
}

std::string end_points_html(const Chart& chart) {
  std::string text =
      "<details><summary>As a table</summary><div class=\"scroll\"><table><thead><tr>"
      "<th class=\"word\" scope=\"col\">Run</th><th scope=\"col\">highest, %</th>"
      "<th scope=\"col\">at step</th><th scope=\"col\">last, %</th><th scope=\"col\">at step</th>"
      "</tr></thead><tbody>\n";
  for (const Curve& curve : chart.curves) {
    text += "<tr><th class=\"word\" scope=\"row\">" + html(curve.run_name()) + "</th>";
    for (const Evaluation& point : {highest(curve.points), curve.points.back()}) {
      text +=
          "<td>" + fixed(100 * point.accuracy, 2) + "</td><td>" + thousands(point.step) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div></details>\n";
}

Json chart_data(const Chart& chart) {
  Json curves = Json::array();
  for (const Curve& curve : chart.curves) {
    Json steps = Json::array(), percents = Json::array();
    for (const Evaluation& point : curve.chart_points) {
      steps.push_back(point.step);
      percents.push_back(std::round(1e4 * point.accuracy) / 100);
    }
    curves.push_back({{"name", clean(curve.run_name())},
                      {"color", curve.style % kNumCurveColors},
                      {"dash", curve.style / kNumCurveColors % kNumCurveDashes},
                      {"steps", steps},
                      {"percents", percents}});
  }
  return {{"curves", curves}};
}

std::string figure_html(const Chart& chart) {
  std::string text = "<figure>\n<h3>" + html(chart.column->title) +
                     " <span class=\"quiet\">validation accuracy, %</span></h3>\n" +
                     chart_html("curves", chart_data(chart)) +
                     "<svg class=\"static\" viewBox=\"0 0 " + fixed(kWidth, 0) + " " +
                     fixed(kHeight, 0) + "\" role=\"img\" aria-label=\"" +
                     html(description(chart)) + "\">\n" + axes_svg(chart);
  for (const Curve& curve : chart.curves) text += curve_svg(chart, curve);
  return text + "</svg>\n" + legend_html(chart) + end_points_html(chart) + "</figure>\n";
}

}  // namespace

std::vector<double> axis_ticks(double low, double high) {
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double part = rough / power;
  const double step = power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
  std::vector<double> ticks;
  const double first = std::floor(low / step), last = std::ceil(high / step);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

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
  const CurveNames names(records, board);
  std::string text;
  for (const TaskColumn& column : board.columns) {
    Chart chart{
        .column = &column, .curves = {}, .legend = names.all(), .steps = {}, .percents = {}};
    for (const RunRecord& run : records) {
      if (run.task != column.task || run.kind != "train") continue;
      std::vector<Evaluation> points = thinned_curve(run.val_curve, kMostPoints);
      if (points.empty()) continue;
      const std::string name = names.name_of(run);
      chart.curves.push_back({name, run.seed, std::move(points),
                              thinned_curve(run.val_curve, kMostChartPoints),
                              names.style_of(name)});
    }
    if (chart.curves.empty()) continue;
    set_ticks(chart);
    text += figure_html(chart);
  }
  return text;
}

}  // namespace lra::report
