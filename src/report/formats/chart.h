// The charts of the page as inline SVG: they show without scripts, offline and on paper. The page's
// script lets a reader look into the lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lra::report {

// Round numbers for an axis: 3 to 7 ticks that cover [low, high], a multiple of 1, 2 or 5 times a
// power of ten apart. `high` > `low`, both finite.
std::vector<double> axis_ticks(double low, double high);

struct ChartPoint {
  double x = 0, y = 0;
};

// `style`: the color, and from the ninth on the dash, that tell it from others.
struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;  // by x, at least one
  int style = 0;
};

struct ChartCircle {
  std::string name, remark;  // remark: shown to those who point at it
  ChartPoint at;
  double area = 0;         // 0 or more, in any unit
  bool is_marked = false;  // in another color, and joined by a line with the others that are
};

struct ChartBars {
  std::string name;
  std::vector<double> values;  // one for each entry of the legend, 0 or more
};

// Each function returns an <svg> with `description` as its text alternative. Titles run along the
// axes. Lines of percents against training steps: x from 0, y not below.
std::string line_chart(const std::string& description, const std::vector<ChartLine>& lines);
std::string circle_chart(const std::string& description, const std::string& x_title,
                         const std::string& y_title, const std::vector<ChartCircle>& circles);
// Groups of bars.
std::string bar_chart(const std::string& description, const std::string& y_title,
                      const std::vector<std::string>& legend, const std::vector<ChartBars>& groups);

struct ChartPanelPoint {
  std::string name;  // of what it is the value, and its place on the axis
  double place = 0, value = 0, half_width = 0;
  int64_t num_examples = 0;
};
struct ChartPanel {
  std::string name;
  std::vector<std::vector<ChartPanelPoint>> lines;
};
// Small multiples: a panel for each, with the same axes, percents against groups, whose points are
// joined by lines if they are ordered.
std::string panel_charts(const std::vector<ChartPanel>& panels,
                         const std::vector<std::string>& groups, bool is_ordered);

struct LegendEntry {
  std::string name;
  int style = 0;
};
std::string legend_html(const std::vector<LegendEntry>& entries);

// A <figure>: heading, the charts side by side, a caption, and `table` to unfold.
std::string chart_figure(const std::string& title, const std::string& caption,
                         const std::vector<std::string>& charts, const std::string& table);

}  // namespace lra::report
