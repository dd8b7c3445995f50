// The charts of the page as inline SVG: they show without scripts, offline and on paper. The page's
// script lets a reader look into the lines. And learning curves in a terminal.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/tables/breakdown.h"

namespace lra::report {

// Round numbers for an axis: 3 to 7 ticks that cover [low, high], a multiple of 1, 2 or 5 times a
// power of ten apart. `high` > `low`, both finite.
std::vector<double> axis_ticks(double low, double high);

// A learning curve: validation accuracy in percent against training steps.
struct Curve {
  std::string name;
  std::vector<Evaluation> points;  // by step, at least one
  int style = 0;  // the color, and from the ninth on the dash, that tell it from others on the page
};

struct ChartPoint {
  double x = 0, y = 0;
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
// axes.
std::string line_chart(const std::string& description, const std::vector<Curve>& curves);
std::string circle_chart(const std::string& description, const std::string& x_title,
                         const std::string& y_title, const std::vector<ChartCircle>& circles);
std::string bar_chart(const std::string& description, const std::string& y_title,
                      const std::vector<std::string>& legend, const std::vector<ChartBars>& groups);

// Small multiples: a panel for each of the models, with the same axes, percents against groups,
// whose points are joined by lines if they are ordered. Runs of one model share its panel.
std::string panel_charts(const BreakdownGrid& grid, const std::vector<std::string>& models);

struct LegendEntry {
  std::string name;
  int style = 0;
};
std::string legend_html(const std::vector<LegendEntry>& entries);

// A <figure>: heading, the charts side by side, a caption, and `table` to unfold.
std::string chart_figure(const std::string& title, const std::string& caption,
                         const std::vector<std::string>& charts, const Table& table);

struct TerminalLook {
  bool color = false;    // escape sequences
  bool braille = false;  // points of which a character has eight, which needs UTF-8; else letters
};
// 80 columns wide. The name and the last accuracy of each curve stand at its end, the best on top.
// A curve is drawn over those that are worse.
std::string terminal_chart(std::vector<Curve> curves, const TerminalLook& look);

}  // namespace lra::report
