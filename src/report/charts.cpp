#include "report/charts.h"

#include <algorithm>

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
                         const Json& specification, const std::string& table) {
  return "<figure>\n<h3>" + html(title) + "</h3>\n" + chart_html("specification", specification) +
         "<figcaption>" + html(caption) + "</figcaption>\n<details><summary>As a table</summary>" +
         table + "</details></figure>\n";
}

Json trade_off_chart(const TradeOff& trade_off) {
  Json points = Json::array();
  for (const TradeOffPoint& point : trade_off.points) {
    const std::string memory = point.memory_gb ? ", " + fixed(*point.memory_gb, 2) + " GB" : "";
    points.push_back({{"model", clean(point.title)},
                      {"quality", point.quality},
                      {"speed", point.speed},
                      {"memory", point.memory_gb.value_or(0)},
                      {"front", point.on_front},
                      {"text", clean(point.title) + ": " + fixed(point.quality, 2) + " %, " +
                                   fixed(point.speed, 2) + "x" + memory}});
  }
  const Json x = axis("speed", "training speed, Transformer = 1", false);
  const Json y = axis("quality", trade_off.quality_name, false);
  const Json front = {{"filter", {{"field", "front"}, {"equal", true}}}};
  Json chart = specification(trade_off.title +
                                 ". Circle area is memory; the line is the Pareto "
                                 "front.",
                             340);
  chart["data"] = {{"values", points}};
  chart["encoding"] = {{"x", x}, {"y", y}};
  chart["layer"] = {
      {{"transform", Json::array({front})},
       {"mark", {{"type", "line"}, {"strokeDash", {5, 4}}, {"strokeWidth", 1.5}}},
       {"encoding",
        {{"color", colour("soft")}, {"order", {{"field", "speed"}, {"type", "quantitative"}}}}}},
      {{"mark", {{"type", "circle"}, {"opacity", 0.6}}},
       {"encoding",
        {{"size",
          {{"field", "memory"},
           {"type", "quantitative"},
           {"title", "memory, GB"},
           {"scale", {{"range", {30, 1400}}, {"zero", true}}},
           {"legend", {{"orient", "bottom"}, {"symbolFillColor", "var(--soft)"}}}}},
         {"color",
          {{"condition", {{"test", {{"field", "front"}, {"equal", true}}}, {"value", "var(--c1)"}}},
           {"value", "var(--c0)"}}},
         {"tooltip", {{"field", "text"}, {"type", "nominal"}}}}}},
      {{"mark", {{"type", "text"}, {"dy", -14}, {"fontSize", 12}}},
       {"encoding",
        {{"text", {{"field", "model"}, {"type", "nominal"}}}, {"color", colour("ink")}}}}};
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
        {"axis", {{"labelAngle", 0}}}}},
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
