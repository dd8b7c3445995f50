#include "report/formats/chart.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/text_format.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/lists.h"

namespace lra::report {
namespace {

constexpr int kWidth = 560, kHeight = 320;
constexpr double kRight = 540, kTop = 12;
constexpr double kLetter = 6.5;                // mean width of one
constexpr double kMaxRadius = 21;              // of a circle
constexpr int kNumColors = 8, kNumDashes = 3;  // of page.css: c0 .. c7, d0 .. d2

std::string style_class(int style) {
  return "c" + std::to_string(style % kNumColors) + " d" +
         std::to_string(style / kNumColors % kNumDashes);
}

// The values of one axis, from its first to its last tick, on the drawing.
struct Scale {
  std::vector<double> ticks;
  double begin, end;

  double low() const { return ticks.front(); }
  double span() const { return ticks.back() - ticks.front(); }
  double operator()(double value) const { return begin + (end - begin) * (value - low()) / span(); }

  // Formats a value as exactly as the ticks are apart, all of an axis in one unit: "0.25", "12.5K".
  std::string text(double value) const {
    if (std::abs(value) < 1e-9 * span()) return "0";
    const double most = std::max(std::abs(ticks.front()), std::abs(ticks.back()));
    const double unit = most >= 1e6 ? 1e6 : most >= 1e4 ? 1e3 : 1;
    const double apart = (ticks[1] - ticks[0]) / unit;
    const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(apart) - 1e-9)));
    return fixed(value / unit, decimals) + (unit == 1 ? "" : unit == 1e3 ? "K" : "M");
  }
};

struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // A scale at least `least` wide, and a fiftieth of the values, in case these are equal.
  Scale scale(double begin, double end, double least) const {
    const double wide = std::max(least, std::max(std::abs(low), std::abs(high)) / 50);
    const double more = high - low < wide ? wide / 2 : 0;
    return {axis_ticks(low - more, high + more), begin, end};
  }
};

std::string line_svg(const char* kind, double x1, double y1, double x2, double y2) {
  return filled(R"(<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>)", {kind, x1, y1, x2, y2});
}

// `angle`: degrees, around its place.
std::string text_svg(double x, double y, const char* anchor, const std::string& text,
                     const char* kind = "", int angle = 0) {
  const std::string turn =
      angle ? filled(" transform=\"rotate({} {} {})\"", {angle, x, y}) : std::string();
  return filled(R"(<text class="{}" text-anchor="{}" x="{}" y="{}"{}>{}</text>)",
                {kind, anchor, x, y, turn, html(text)});
}

std::string title_svg(const std::string& text) { return "<title>" + html(text) + "</title>"; }

std::string y_axis_svg(const Scale& y, double left, const std::string& title) {
  std::string svg;
  for (const double tick : y.ticks) {
    svg += line_svg("grid", left, y(tick), kRight, y(tick)) +
           text_svg(left - 8, y(tick) + 4, "end", y.text(tick));
  }
  if (!title.empty()) svg += text_svg(14, (y.begin + y.end) / 2, "middle", title, "", -90);
  return svg;
}

std::string x_axis_svg(const Scale& x, double left, double bottom, const std::string& title) {
  std::string svg = line_svg("axis", left, bottom, kRight, bottom);
  for (const double tick : x.ticks) {
    svg += line_svg("axis", x(tick), bottom, x(tick), bottom + 4) +
           text_svg(x(tick), bottom + 18, "middle", x.text(tick), "tick");
  }
  return svg + text_svg((x.begin + x.end) / 2, bottom + 38, "middle", title) + "\n";
}

std::string svg_of(const char* kind, const std::string& description, const std::string& content) {
  return filled(R"(<svg class="chart {}" viewBox="0 0 {} {}" role="img" aria-label="{}">)"
                "\n{}</svg>\n",
                {kind, kWidth, kHeight, html(description), content});
}

// Draws in units of steps and percents, so that the script reads values where it sees lines; the
// sign is SVG's, whose y points down.
std::string curve_svg(const Curve& curve) {
  std::string path;
  for (const Evaluation& point : curve.points) {
    path += (path.empty() ? "M" : "L") + std::to_string(point.step) + " " +
            fixed(-100 * point.accuracy, 2);
  }
  // A path of one point draws nothing; a zero-length line with round ends draws a dot.
  const bool is_single = curve.points.size() == 1;
  return filled(R"(<path class="curve {}{}" d="{}{}">{}</path>)",
                {style_class(curve.style), is_single ? " dot" : "", path, is_single ? "h0" : "",
                 title_svg(curve.name)}) +
         "\n";
}

struct Box {
  double left, right, top, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

struct Disc {
  ChartPoint at;
  double radius;
};

// Places names around circles where they overlap no circle and no other name, as near as possible;
// a line leads to a name that is farther away. Letters are those of a phone, which are larger.
class NamePlaces {
 public:
  explicit NamePlaces(const std::vector<Disc>& discs) {
    for (const auto& [at, radius] : discs) {
      taken_.push_back({at.x - radius, at.x + radius, at.y - radius, at.y + radius});
    }
  }
  std::string name_svg(const Disc& disc, const std::string& name) {
    const double width = kWideLetter * display_width(name);
    Box best{};
    int fewest = INT32_MAX;
    for (double away = 3; away < 200 && fewest > 0; away += 12) {
      for (const auto& [x, y] : kDirections) {
        const double reach = disc.radius + away;
        const Box box = box_at({disc.at.x + x * reach, disc.at.y + y * reach}, x, y, width);
        if (box.left < kNamesLeft || box.right > kWidth || box.top < 0 || box.bottom > kHeight - 40)
          continue;
        const auto overlaps = static_cast<int>(
            std::ranges::count_if(taken_, [&](const Box& taken) { return taken.meets(box); }));
        if (overlaps >= fewest) continue;
        fewest = overlaps;
        best = box;
      }
    }
    taken_.push_back(best);
    const double x = (best.left + best.right) / 2, y = (best.top + best.bottom) / 2;
    return leader_svg(disc, best) + text_svg(x, y + 4, "middle", name, "name") + "\n";
  }

 private:
  static constexpr double kWideLetter = 9.4, kHalfLine = 10, kNamesLeft = 60;  // beside the axis
  static constexpr ChartPoint kDirections[] = {{0, -1},   {0, 1},     {1, 0},   {-1, 0},
                                               {.7, -.7}, {-.7, -.7}, {.7, .7}, {-.7, .7}};
  // A box that begins at the point and extends in the direction.
  static Box box_at(ChartPoint at, double x, double y, double width) {
    const double left = x > 0.5 ? at.x : x < -0.5 ? at.x - width : at.x - width / 2;
    const double top = y > 0.5 ? at.y : y < -0.5 ? at.y - 2 * kHalfLine : at.y - kHalfLine;
    return {left, left + width, top, top + 2 * kHalfLine};
  }
  static std::string leader_svg(const Disc& disc, const Box& box) {
    const double x = std::clamp(disc.at.x, box.left, box.right);
    const double y = std::clamp(disc.at.y, box.top, box.bottom);
    if (std::hypot(x - disc.at.x, y - disc.at.y) < disc.radius + 12) return "";
    return line_svg("leader", disc.at.x, disc.at.y, x, y);
  }

  std::vector<Box> taken_;
};

std::string shortened(const std::string& name) {
  constexpr size_t kMost = 26;
  return name.size() <= kMost ? name : clean(name.substr(0, kMost)) + "...";
}

std::string panel_line_svg(const BreakdownGrid& grid, const BreakdownGrid::Run& run, const Scale& x,
                           const Scale& y) {
  std::string svg, line;
  for (size_t i = 0; i < run.points.size(); ++i) {
    const auto& [value, half_width, num_examples] = run.points[i];
    if (num_examples == 0) continue;
    const double at = x(static_cast<double>(i)),
                 high = std::min(y.ticks.back(), value + half_width),
                 low = std::max(y.low(), value - half_width);
    line += filled("{},{} ", {at, y(value)});
    svg += filled(
        "<g>{}{}<circle class=\"c0\" cx=\"{}\" cy=\"{}\" r=\"3\"/></g>\n",
        {title_svg(filled("{}, {}: {} ± {} %, ", {run.label, grid.groups[i], value, half_width}) +
                   counted(num_examples, "example")),
         line_svg("interval", at, y(low), at, y(high)), at, y(value)});
  }
  if (!grid.is_ordered) return svg;
  return svg + filled("<polyline class=\"curve c0\" points=\"{}\"/>\n", {line});
}

// All names of the groups where they fit, else the first and the last.
std::string panel_names_svg(const Scale& x, double at, const std::vector<std::string>& groups) {
  constexpr double kWideLetter = 9.5;
  const double apart = x(1) - x(0);
  const bool all_fit = std::ranges::all_of(groups, [&](const std::string& name) {
    return kWideLetter * (display_width(name) + 1) < apart;
  });
  std::string svg;
  for (size_t i = 0; i < groups.size(); ++i) {
    const bool is_first = i == 0, is_last = i + 1 == groups.size();
    if (!all_fit && !is_first && !is_last) continue;
    const char* anchor = all_fit ? "middle" : is_first ? "start" : "end";
    svg += text_svg(x(static_cast<double>(i)), at, anchor, shortened(groups[i]));
  }
  return svg;
}

std::string panel_svg(const BreakdownGrid& grid, const std::string& model, const Scale& x,
                      const Scale& y) {
  std::string svg = panel_names_svg(x, y.begin + 20, grid.groups);
  for (const double tick : {y.ticks.front(), y.ticks.back()}) {
    svg += line_svg("grid", x.begin, y(tick), x.end, y(tick)) +
           text_svg(x.begin - 14, y(tick) + 4, "end", y.text(tick));
  }
  for (const BreakdownGrid::Run& run : grid.runs) {
    if (run.model == model) svg += panel_line_svg(grid, run, x, y);
  }
  return filled(
      R"(<figure><figcaption>{}</figcaption><svg class="chart panel" viewBox="0 0 260 150" )"
      R"(role="img" aria-label="{}">)"
      "\n{}</svg></figure>\n",
      {html(model), html(model), svg});
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

std::string line_chart(const std::string& description, const std::vector<Curve>& curves) {
  constexpr double kLeft = 46, kBottom = kHeight - 44;
  Range steps{0, 1}, percents;
  for (const Curve& curve : curves) {
    for (const Evaluation& point : curve.points) {
      steps.take(static_cast<double>(point.step));
      percents.take(100 * point.accuracy);
    }
  }
  // One point is less than the noise of any task.
  const Scale x = steps.scale(kLeft, kRight, 1), y = percents.scale(kBottom, kTop, 1);
  return svg_of("lines", description,
                y_axis_svg(y, kLeft, "") + x_axis_svg(x, kLeft, kBottom, "training step") +
                    filled(R"(<svg x="{}" y="{}" width="{}" height="{}" overflow="visible" )"
                           R"(preserveAspectRatio="none" viewBox="0 {} {} {}">)"
                           "\n{}</svg>",
                           {kLeft, kTop, kRight - kLeft, kBottom - kTop, -y.ticks.back(), x.span(),
                            y.span(), concatenated(curves, curve_svg)}));
}

std::string circle_chart(const std::string& description, const std::string& x_title,
                         const std::string& y_title, const std::vector<ChartCircle>& circles) {
  constexpr double kLeft = 62, kBottom = kHeight - 44;
  Range xs, ys, areas{0, 0};
  for (const ChartCircle& circle : circles) {
    xs.take(circle.at.x);
    ys.take(circle.at.y);
    areas.take(circle.area);
  }
  // Room for whole circles at the ends of the axes.
  const Scale x = xs.scale(kLeft + kMaxRadius, kRight - kMaxRadius, 1e-6),
              y = ys.scale(kBottom - kMaxRadius, kTop + kMaxRadius, 1e-6);
  std::vector<Disc> discs;
  std::vector<ChartPoint> front;
  for (const ChartCircle& circle : circles) {
    const double share = areas.high > 0 ? circle.area / areas.high : 0;
    discs.push_back({{x(circle.at.x), y(circle.at.y)}, 3 + (kMaxRadius - 3) * std::sqrt(share)});
    if (circle.is_marked) front.push_back(discs.back().at);
  }
  std::ranges::sort(front, {}, &ChartPoint::x);
  std::string svg = y_axis_svg(y, kLeft, y_title) + x_axis_svg(x, kLeft, kBottom, x_title), points;
  for (const ChartPoint& at : front) points += filled("{},{} ", {at.x, at.y});
  svg += filled("<polyline class=\"front\" points=\"{}\"/>\n", {points});
  NamePlaces names(discs);
  for (size_t i = 0; i < circles.size(); ++i) {
    const auto& [at, radius] = discs[i];
    svg += filled(R"(<circle class="{}" cx="{}" cy="{}" r="{}">{}</circle>)",
                  {style_class(circles[i].is_marked ? 1 : 0), at.x, at.y, radius,
                   title_svg(circles[i].remark)}) +
           names.name_svg(discs[i], circles[i].name);
  }
  return svg_of("circles", description, svg);
}

std::string bar_chart(const std::string& description, const std::string& y_title,
                      const std::vector<std::string>& legend,
                      const std::vector<ChartBars>& groups) {
  // Names that do not fit side by side are slanted.
  const bool is_slanted = std::any_of(groups.begin(), groups.end(), [&](const ChartBars& group) {
    return kLetter * display_width(group.name) * static_cast<double>(groups.size()) > kWidth - 100;
  });
  const double left = is_slanted ? 90 : 62, bottom = kHeight - (is_slanted ? 100 : 30);
  Range values{0, 1};
  for (const ChartBars& group : groups) {
    for (const double value : group.values) values.take(value);
  }
  const Scale y = values.scale(bottom, kTop, 1);
  const double width = (kRight - left) / static_cast<double>(groups.size());
  const double bar = 0.7 * width / static_cast<double>(legend.size());
  std::string svg = y_axis_svg(y, left, y_title) + line_svg("axis", left, bottom, kRight, bottom);
  for (size_t g = 0; g < groups.size(); ++g) {
    const ChartBars& group = groups[g];
    const double middle = left + width * (static_cast<double>(g) + 0.5);
    for (size_t i = 0; i < group.values.size(); ++i) {
      const double top = y(group.values[i]);
      svg += filled("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>\n",
                    {style_class(i ? kNumColors - 1 : 0),
                     middle - 0.35 * width + bar * static_cast<double>(i), top, bar, bottom - top,
                     title_svg(group.name + ", " + legend[i] + ": " + fixed(group.values[i], 1))});
    }
    svg += text_svg(middle, bottom + 18, is_slanted ? "end" : "middle", shortened(group.name), "",
                    is_slanted ? -35 : 0) +
           "\n";
  }
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < legend.size(); ++i) entries.push_back({legend[i], i ? kNumColors - 1 : 0});
  return svg_of("bars", description, svg) + legend_html(entries);
}

std::string panel_charts(const BreakdownGrid& grid, const std::vector<std::string>& models) {
  Range values;
  for (const auto& [model, label, points] : grid.runs) {
    if (std::ranges::find(models, model) == models.end()) continue;
    for (const auto& [value, half_width, num_examples] : points) {
      if (num_examples == 0) continue;
      values.take(std::max(0.0, value - half_width));
      values.take(std::min(100.0, value + half_width));
    }
  }
  if (values.high < values.low) return "";
  const double last = std::max(1.0, static_cast<double>(grid.groups.size()) - 1);
  const Scale x{{0, last}, 54, 240}, y = values.scale(124, 10, 1);
  std::string text = "<div class=\"panels\">\n";
  for (const std::string& model : models) text += panel_svg(grid, model, x, y);
  return text + "</div>\n";
}

std::string legend_html(const std::vector<LegendEntry>& entries) {
  const std::string items = concatenated(entries, [](const LegendEntry& entry) {
    return filled(R"(<li><svg viewBox="0 0 22 8" aria-hidden="true"><path class="curve {}" )"
                  R"(d="M1 4h20"/></svg>{}</li>)",
                  {style_class(entry.style), html(entry.name)});
  });
  return "<ul class=\"legend\">" + items + "</ul>\n";
}

std::string chart_figure(const std::string& title, const std::string& caption,
                         const std::vector<std::string>& charts, const Table& table) {
  return filled(
      "<figure>\n<h3>{}</h3>\n<div class=\"charts\">\n{}</div>\n{}"
      "<details><summary>As a table</summary>{}</details></figure>\n",
      {html(title),
       concatenated(charts, [](const auto& chart) { return "<div>" + chart + "</div>\n"; }),
       caption.empty() ? "" : "<figcaption>" + html(caption) + "</figcaption>\n",
       bare_table_html(table)});
}

}  // namespace lra::report
