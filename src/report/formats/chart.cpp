#include "report/formats/chart.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text_format.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

constexpr double kWidth = 560, kHeight = 320, kRight = 540, kTop = 12;
constexpr double kLetter = 6.5;                // mean width of one
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

  // Formats a value as exactly as the ticks are apart: "0.25", "12.5K", "3M".
  std::string text(double value) const {
    const double apart = ticks[1] - ticks[0];
    const auto scaled = [&](double unit, const char* name) {
      return fixed(value / unit, std::fmod(value, unit) == 0 ? 0 : 1) + name;
    };
    if (value >= 1e6) return scaled(1e6, "M");
    if (value >= 1e4) return scaled(1e3, "K");
    return fixed(value, std::max(0, static_cast<int>(std::ceil(-std::log10(apart) - 1e-9))));
  }
};

struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // A scale at least `least` wide, in case all values are equal.
  Scale scale(double begin, double end, double least) const {
    const double more = high - low < least ? least / 2 : 0;
    return {axis_ticks(low - more, high + more), begin, end};
  }
};

std::string number(double value) { return fixed(value, 1); }

std::string line_svg(const char* kind, double x1, double y1, double x2, double y2) {
  return std::string("<line class=\"") + kind + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) +
         "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) + "\"/>";
}

// `angle`: degrees, around its place.
std::string text_svg(double x, double y, const std::string& anchor, const std::string& text,
                     const char* kind = "", int angle = 0) {
  const std::string place = number(x) + " " + number(y);
  return "<text class=\"" + std::string(kind) + "\" text-anchor=\"" + anchor + "\" x=\"" +
         number(x) + "\" y=\"" + number(y) + "\"" +
         (angle ? " transform=\"rotate(" + std::to_string(angle) + " " + place + ")\"" : "") + ">" +
         html(text) + "</text>";
}

std::string title_svg(const std::string& text) { return "<title>" + html(text) + "</title>"; }

std::string y_axis_svg(const Scale& y, double left, const std::string& title) {
  std::string svg;
  for (const double tick : y.ticks) {
    svg += line_svg("grid", left, y(tick), kRight, y(tick)) +
           text_svg(left - 8, y(tick) + 4, "end", y.text(tick));
  }
  if (!title.empty()) svg += text_svg(14, (y.begin + y.end) / 2, "middle", title, "", -90);
  return svg + line_svg("axis", left, y.begin, kRight, y.begin);
}

std::string x_axis_svg(const Scale& x, double bottom, const std::string& title) {
  std::string svg;
  for (const double tick : x.ticks) {
    svg += line_svg("axis", x(tick), bottom, x(tick), bottom + 4) +
           text_svg(x(tick), bottom + 18, "middle", x.text(tick), "tick");
  }
  return svg + text_svg((x.begin + x.end) / 2, bottom + 38, "middle", title) + "\n";
}

std::string svg_of(const char* kind, const std::string& description, const std::string& content) {
  return std::string("<svg class=\"chart ") + kind + "\" viewBox=\"0 0 " + fixed(kWidth, 0) + " " +
         fixed(kHeight, 0) + "\" role=\"img\" aria-label=\"" + html(description) + "\">\n" +
         content + "</svg>\n";
}

// Draws in units of steps and percents, so that the script reads values where it sees lines; the
// sign is SVG's, whose y points down.
std::string curve_svg(const ChartLine& line) {
  std::string path;
  for (const ChartPoint& point : line.points) {
    path += (path.empty() ? "M" : "L") + fixed(point.x, 0) + " " + fixed(-point.y, 2);
  }
  // A path of one point draws nothing; a zero-length line with round ends draws a dot.
  const bool is_single = line.points.size() == 1;
  return "<path class=\"curve " + style_class(line.style) + (is_single ? " dot" : "") + "\" d=\"" +
         path + (is_single ? "h0" : "") + "\">" + title_svg(line.name) + "</path>\n";
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

// Places names next to circles: at the first place that overlaps no circle and no other name, else
// at the first.
class NamePlaces {
 public:
  explicit NamePlaces(const std::vector<Disc>& discs) {
    for (const auto& [at, radius] : discs) {
      taken_.push_back({at.x - radius, at.x + radius, at.y - radius, at.y + radius});
    }
  }
  std::string name_svg(const Disc& disc, const std::string& name) {
    const double away = disc.radius + 9;
    const Place places[] = {{"middle", 0, -away},
                            {"middle", 0, away},
                            {"end", -disc.radius - 5, 0},
                            {"start", disc.radius + 5, 0},
                            {"middle", 0, -away - 16}};
    const auto* place = std::find_if(std::begin(places), std::end(places), [&](const Place& p) {
      const Box box = box_at(disc, p, name);
      return box.left >= 0 && box.right <= kWidth && box.top >= 0 &&
             std::none_of(taken_.begin(), taken_.end(), [&](auto& t) { return t.meets(box); });
    });
    if (place == std::end(places)) place = places;
    taken_.push_back(box_at(disc, *place, name));
    return text_svg(disc.at.x + place->dx, disc.at.y + place->dy + 4, place->anchor, name, "name") +
           "\n";
  }

 private:
  struct Place {
    std::string anchor;
    double dx, dy;
  };
  static Box box_at(const Disc& disc, const Place& place, const std::string& name) {
    const double width = kLetter * display_width(name);
    const double x = disc.at.x + place.dx, y = disc.at.y + place.dy;
    const double left =
        place.anchor == "start" ? x : x - (place.anchor == "end" ? width : width / 2);
    return {left, left + width, y - 7, y + 7};
  }

  std::vector<Box> taken_;
};

std::string shortened(const std::string& name) {
  constexpr size_t kMost = 26;
  return name.size() <= kMost ? name : clean(name.substr(0, kMost)) + "...";
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

std::string line_chart(const std::string& description, const std::vector<ChartLine>& lines) {
  constexpr double kLeft = 46, kBottom = kHeight - 44;
  Range steps{0, 1}, percents;
  for (const ChartLine& line : lines) {
    for (const ChartPoint& point : line.points) {
      steps.take(point.x);
      percents.take(point.y);
    }
  }
  // One point is less than the noise of any task.
  const Scale x = steps.scale(kLeft, kRight, 1), y = percents.scale(kBottom, kTop, 1);
  std::string curves;
  for (const ChartLine& line : lines) curves += curve_svg(line);
  return svg_of("lines", description,
                y_axis_svg(y, kLeft, "") + x_axis_svg(x, kBottom, "training step") + "<svg x=\"" +
                    number(kLeft) + "\" y=\"" + number(kTop) + "\" width=\"" +
                    number(kRight - kLeft) + "\" height=\"" + number(kBottom - kTop) +
                    "\" preserveAspectRatio=\"none\" viewBox=\"0 " + number(-y.ticks.back()) + " " +
                    number(x.span()) + " " + number(y.span()) + "\">\n" + curves + "</svg>");
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
  const Scale x = xs.scale(kLeft, kRight, 1e-6), y = ys.scale(kBottom, kTop, 1e-6);
  std::vector<Disc> discs;
  std::vector<ChartPoint> front;
  for (const ChartCircle& circle : circles) {
    const double share = areas.high > 0 ? circle.area / areas.high : 0;
    discs.push_back({{x(circle.at.x), y(circle.at.y)}, 3 + 18 * std::sqrt(share)});
    if (circle.is_marked) front.push_back(discs.back().at);
  }
  std::sort(front.begin(), front.end(), [](auto& a, auto& b) { return a.x < b.x; });
  std::string svg = y_axis_svg(y, kLeft, y_title) + x_axis_svg(x, kBottom, x_title), points;
  for (const ChartPoint& at : front) points += number(at.x) + "," + number(at.y) + " ";
  svg += "<polyline class=\"front\" points=\"" + points + "\"/>\n";
  NamePlaces names(discs);
  for (size_t i = 0; i < circles.size(); ++i) {
    const auto& [at, radius] = discs[i];
    svg += "<circle class=\"" + style_class(circles[i].is_marked ? 1 : 0) + "\" cx=\"" +
           number(at.x) + "\" cy=\"" + number(at.y) + "\" r=\"" + number(radius) + "\">" +
           title_svg(circles[i].remark) + "</circle>" + names.name_svg(discs[i], circles[i].name);
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
  std::string svg = y_axis_svg(y, left, y_title);
  for (size_t g = 0; g < groups.size(); ++g) {
    const ChartBars& group = groups[g];
    const double middle = left + width * (static_cast<double>(g) + 0.5);
    for (size_t i = 0; i < group.values.size(); ++i) {
      const double top = y(group.values[i]);
      svg += "<rect class=\"" + style_class(i ? kNumColors - 1 : 0) + "\" x=\"" +
             number(middle - 0.35 * width + bar * static_cast<double>(i)) + "\" y=\"" +
             number(top) + "\" width=\"" + number(bar) + "\" height=\"" + number(bottom - top) +
             "\">" + title_svg(group.name + ", " + legend[i] + ": " + fixed(group.values[i], 1)) +
             "</rect>\n";
    }
    svg += text_svg(middle, bottom + 18, is_slanted ? "end" : "middle", shortened(group.name), "",
                    is_slanted ? -35 : 0) +
           "\n";
  }
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < legend.size(); ++i) entries.push_back({legend[i], i ? kNumColors - 1 : 0});
  return svg_of("bars", description, svg) + legend_html(entries);
}

std::string legend_html(const std::vector<LegendEntry>& entries) {
  std::string text = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    text += "<li><svg viewBox=\"0 0 22 8\" aria-hidden=\"true\"><path class=\"curve " +
            style_class(entry.style) + "\" d=\"M1 4h20\"/></svg>" + html(entry.name) + "</li>";
  }
  return text + "</ul>\n";
}

std::string chart_figure(const std::string& title, const std::string& caption,
                         const std::vector<std::string>& charts, const std::string& table) {
  std::string text = "<figure>\n<h3>" + html(title) + "</h3>\n<div class=\"charts\">\n";
  for (const std::string& chart : charts) text += "<div>" + chart + "</div>\n";
  text += "</div>\n";
  if (!caption.empty()) text += "<figcaption>" + html(caption) + "</figcaption>\n";
  return text + "<details><summary>As a table</summary>" + table + "</details></figure>\n";
}

}  // namespace lra::report
