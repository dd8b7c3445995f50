#include "report/charts.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"
#include "report/comparison_tables.h"
#include "report/markup.h"

namespace lra::report {
namespace {

Json axis(const std::string& field, const std::string& title, bool from_zero) {
  return {{"field", field},
          {"type", "quantitative"},
          {"title", title},
          {"scale", {{"zero", from_zero}, {"nice", true}}}};
}

Json colour(const char* name) { return {{"value", std::string("var(--") + name + ")"}}; }

Json specification(const std::string& description, double height) {
  return {{"description", clean(description)},
          {"width", "container"},
          {"height", height},
          {"autosize", {{"type", "fit"}, {"contains", "padding"}}}};
}

std::string span_group(const AnalysisRecord& record, bool several_models) {
  const auto paper = paper_task(record.task);
  std::string text = paper ? std::string(paper_task_title(*paper))
                           : (record.task_title.empty() ? record.task : record.task_title);
  if (several_models) {
    text += ", " + (record.model_title.empty() ? record.model : record.model_title);
  }
  return clean(text);
}

// Where the name of a circle stands beside it.
struct Side {
  const char* name;
  const char* align;
  double dx, dy;
};
constexpr Side kSides[] = {{"above", "center", 0, -16},
                           {"below", "center", 0, 18},
                           {"left", "right", -12, 0},
                           {"right", "left", 12, 0},
                           {"high above", "center", 0, -32}};

// A point of a trade-off on one of the panels.
struct Circle {
  const TradeOffPoint* point;
  double x, area;
  bool on_front;
};

std::vector<Circle> circles_of(const TradeOff& trade_off, TradeOffPanel panel) {
  std::vector<Circle> circles;
  for (const TradeOffPoint& point : trade_off.points) {
    if (panel == TradeOffPanel::kSpeed) {
      circles.push_back({&point, point.speed, point.memory_gb.value_or(0), point.on_speed_front});
    } else if (point.memory_gb) {
      circles.push_back(
          {&point, *point.memory_gb, point.examples_per_s.value_or(0), point.on_memory_front});
    }
  }
  return circles;
}

std::string tooltip(const TradeOffPoint& point) {
  std::string text =
      clean(point.title) + ": " + fixed(point.quality, 2) + " %, " + fixed(point.speed, 2) + "x";
  if (point.examples_per_s) text += ", " + rate_text(point.examples_per_s) + " examples/s";
  if (point.memory_gb) text += ", " + fixed(*point.memory_gb, 2) + " GB";
  return text;
}

struct Box {
  double left, right, top, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// For each point the first side at which its name meets no circle and no name before it, as seen on
// a page of a common width; else the first.
class NamePlaces {
 public:
  explicit NamePlaces(const std::vector<Circle>& circles) {
    for (const Circle& circle : circles) {
      xs_.take(circle.x);
      ys_.take(circle.point->quality);
    }
    constexpr double kRadius = 6;
    for (const Circle& point : circles) {
      const auto [x, y] = place_of(point);
      taken_.push_back({x - kRadius, x + kRadius, y - kRadius, y + kRadius});
    }
  }

  const Side& next(const Circle& point) {
    const Side* chosen = &kSides[0];
    for (const Side& side : kSides) {
      if (!is_free(box_at(point, side))) continue;
      chosen = &side;
      break;
    }
    taken_.push_back(box_at(point, *chosen));
    return *chosen;
  }

 private:
  static constexpr double kWidth = 500, kHeight = 260, kMargin = 40, kLetter = 6.5, kLine = 14;

  struct Range {
    double low = HUGE_VAL, high = -HUGE_VAL;
    void take(double value) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    double part(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
  };

  std::pair<double, double> place_of(const Circle& circle) const {
    return {kWidth * xs_.part(circle.x), kHeight * (1 - ys_.part(circle.point->quality))};
  }
  Box box_at(const Circle& circle, const Side& side) const {
    const auto [x, y] = place_of(circle);
    const double width = kLetter * display_width(circle.point->title);
    const std::string_view align = side.align;
    const double left = x + side.dx - (align == "left" ? 0 : align == "right" ? width : width / 2);
    return {left, left + width, y + side.dy - kLine / 2, y + side.dy + kLine / 2};
  }
  bool is_free(const Box& box) const {
    if (box.left < -kMargin || box.right > kWidth + kMargin) return false;
    return std::none_of(taken_.begin(), taken_.end(),
                        [&](const Box& other) { return other.meets(box); });
  }

  Range xs_, ys_;
  std::vector<Box> taken_;
};

// Circles and the line of the front through them.
Json front_layer() {
  return {{"transform", Json::array({{{"filter", {{"field", "front"}, {"equal", true}}}}})},
          {"mark", {{"type", "line"}, {"strokeDash", {5, 4}}, {"strokeWidth", 1.5}}},
          {"encoding",
           {{"color", colour("soft")}, {"order", {{"field", "x"}, {"type", "quantitative"}}}}}};
}

Json circle_layer(const std::string& area_title) {
  return {
      {"mark", {{"type", "circle"}, {"opacity", 0.6}}},
      {"encoding",
       {{"size",
         {{"field", "area"},
          {"type", "quantitative"},
          {"title", area_title},
          {"scale", {{"range", {30, 1400}}, {"zero", true}}},
          {"legend", {{"orient", "bottom"}, {"symbolFillColor", "var(--soft)"}}}}},
        {"color",
         {{"condition", {{"test", {{"field", "front"}, {"equal", true}}}, {"value", "var(--c1)"}}},
          {"value", "var(--c0)"}}},
        {"tooltip", {{"field", "text"}, {"type", "nominal"}}}}}};
}

Json name_layer(const Side& side) {
  return {{"transform", Json::array({{{"filter", {{"field", "side"}, {"equal", side.name}}}}})},
          {"mark",
           {{"type", "text"},
            {"align", side.align},
            {"baseline", "middle"},
            {"dx", side.dx},
            {"dy", side.dy},
            {"fontSize", 12}}},
          {"encoding",
           {{"text", {{"field", "model"}, {"type", "nominal"}}}, {"color", colour("ink")}}}};
}

}  // namespace

std::string chart_html(const std::string& kind, const Json& data) {
  // A data block is never run, and without "<" nothing in it can end it.
  std::string text;
  for (const char c : data.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return "<div class=\"chart\" data-kind=\"" + kind + "\"><script type=\"application/json\">" +
         text + "</script></div>\n";
}

std::string chart_figure(const std::string& title, const std::string& caption,
                         const std::vector<Json>& specifications, const std::string& table) {
  std::string charts;
  for (const Json& one : specifications) charts += chart_html("specification", one);
  if (specifications.size() > 1) charts = "<div class=\"charts\">\n" + charts + "</div>\n";
  return "<figure>\n<h3>" + html(title) + "</h3>\n" + charts + "<figcaption>" + html(caption) +
         "</figcaption>\n<details><summary>As a table</summary>" + table + "</details></figure>\n";
}

Json trade_off_chart(const TradeOff& trade_off, TradeOffPanel panel) {
  const bool of_speed = panel == TradeOffPanel::kSpeed;
  const std::vector<Circle> circles = circles_of(trade_off, panel);
  Json points = Json::array();
  NamePlaces places(circles);
  for (const Circle& circle : circles) {
    points.push_back({{"model", clean(circle.point->title)},
                      {"quality", circle.point->quality},
                      {"x", circle.x},
                      {"area", circle.area},
                      {"front", circle.on_front},
                      {"side", places.next(circle).name},
                      {"text", tooltip(*circle.point)}});
  }
  Json chart = specification(trade_off.title +
                                 (of_speed ? ". Speed along x, circle area is memory"
                                           : ". Memory along x, circle area is "
                                             "examples per second") +
                                 "; the line is the Pareto front.",
                             340);
  chart["data"] = {{"values", points}};
  chart["encoding"] = {
      {"x", axis("x", of_speed ? "training speed, Transformer = 1" : "memory, GB", false)},
      {"y", axis("quality", trade_off.quality_name, false)}};
  chart["layer"] = {front_layer(), circle_layer(of_speed ? "memory, GB" : "examples per second")};
  for (const Side& side : kSides) chart["layer"].push_back(name_layer(side));
  return chart;
}

Json span_chart(const std::vector<Analysis>& analyses) {
  const auto spans = analyses_of(analyses, "span");
  if (spans.empty()) return nullptr;
  const bool several = std::any_of(spans.begin(), spans.end(), [&](const AnalysisRecord* record) {
    return record->model != spans[0]->model;
  });
  Json values = Json::array();
  for (const AnalysisRecord* record : spans) {
    const std::string group = span_group(*record, several);
    const auto add = [&](const char* what, double span) {
      values.push_back({{"task", group},
                        {"what", what},
                        {"span", span},
                        {"text", group + ", " + what + ": " + fixed(span, 1) + " tokens"}});
    };
    add("measured", record->span->tokens.mean);
    add("uniform attention", record->span->tokens.uniform);
  }
  Json chart =
      specification("Required attention span in tokens by task, beside uniform attention", 300);
  chart["data"] = {{"values", values}};
  chart["mark"] = {{"type", "bar"}};
  chart["encoding"] = {
      {"x",
       {{"field", "task"},
        {"type", "nominal"},
        {"title", nullptr},
        {"sort", nullptr},
        // More names than stand beside each other are slanted.
        {"axis", {{"labelAngle", spans.size() > 6 ? -35 : 0}, {"labelLimit", 240}}}}},
      {"xOffset", {{"field", "what"}, {"type", "nominal"}}},
      {"y", axis("span", "span, tokens", true)},
      {"color",
       {{"field", "what"},
        {"type", "nominal"},
        {"title", nullptr},
        {"scale",
         {{"domain", {"measured", "uniform attention"}}, {"range", {"var(--c0)", "var(--c7)"}}}},
        {"legend", {{"orient", "bottom"}}}}},
      {"tooltip", {{"field", "text"}, {"type", "nominal"}}}};
  return chart;
}

}  // namespace lra::report
