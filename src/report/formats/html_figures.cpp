// Figures 1 to 5 of the paper, from our records, and where models fail: small multiples, one panel
// a model, all with the same axes.
#include <algorithm>
#include <set>
#include <utility>

#include "base/text_format.h"
#include "report/formats/chart.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/tables/trade_off.h"

namespace lra::report {
namespace {

constexpr size_t kMostPictures = 12;  // of a kind: a page stays small

// Adds nothing when the record's picture could not be read.
void add_picture(std::vector<std::string>& pictures, const Analysis& analysis,
                 const std::string& name, const std::string& caption) {
  const auto found = analysis.pictures.find(name);
  if (found == analysis.pictures.end()) return;
  pictures.push_back(filled(R"(<figure><img src="data:image/png;base64,{}" alt="{}"><figcaption>)"
                            "{}</figcaption></figure>\n",
                            {base64(found->second), html(caption), html(caption)}));
}

std::string pictures_and_table(const Table& table, const std::string& caption,
                               std::vector<std::string> pictures) {
  if (table.rows.empty() || pictures.empty()) return table_html(table);
  if (const size_t count = pictures.size(); count > kMostPictures) {
    pictures.resize(kMostPictures);
    pictures.push_back(caption_html(filled("The first {} of {}.", {kMostPictures, count})));
  }
  return filled("<h3>{}</h3>\n{}<div class=\"pictures\">\n{}</div>\n{}",
                {html(table.title), caption_html(caption + " " + table.caption),
                 joined(pictures, ""), bare_table_html(table)});
}

// False for a page of own data alone, which lacks nothing of the paper's.
bool has_benchmark(const ReportInput& input) {
  return !input.board.rows.empty() || !input.grids.empty();
}

std::string figure2(const std::vector<Analysis>& analyses) {
  const Table table = span_table(analyses);
  if (table.rows.empty()) return "";
  const auto spans = analyses_of(analyses, "span");
  std::set<std::string> models;
  for (const AnalysisRecord* record : spans) models.insert(record->model_title);
  std::vector<ChartBars> groups;
  for (const AnalysisRecord* record : spans) {
    const SpanFigures& span = record->span->tokens;
    const std::string model = models.size() > 1 ? ", " + record->model_title : "";
    groups.push_back({shown_task(*record) + model, {span.mean, span.uniform}});
  }
  return chart_figure(
      table.title, table.caption,
      {bar_chart("Required attention span in tokens, compared with uniform attention",
                 "span, tokens", {"measured", "uniform attention"}, groups)},
      table);
}

std::string remark_of(const TradeOff& trade_off, const TradeOffPoint& point) {
  std::string text =
      point.title + ": " + fixed(point.quality, 2) + " %, " + speed_text(trade_off, point);
  if (point.examples_per_s) text += ", " + rate_text(point.examples_per_s) + " examples/s";
  if (point.memory_gb) text += ", " + gigabytes_text(point.memory_gb);
  return text;
}

// Quality against speed, or against memory, with the other as the area of the circles.
std::string trade_off_chart(const TradeOff& trade_off, bool of_memory) {
  std::vector<ChartCircle> circles;
  for (const TradeOffPoint& p : trade_off.points) {
    if (of_memory && !p.memory_gb) continue;
    circles.push_back({p.title,
                       remark_of(trade_off, p),
                       {of_memory ? *p.memory_gb : p.speed, p.quality},
                       (of_memory ? p.examples_per_s : p.memory_gb).value_or(0),
                       of_memory ? p.on_memory_front : p.on_speed_front});
  }
  if (circles.empty()) return "";
  return circle_chart(std::string("Quality against ") +
                          (of_memory ? "memory; the area of circles is examples per second"
                                     : "training speed; the area of circles is memory") +
                          ", the line the Pareto front.",
                      of_memory            ? "memory, GB"
                      : trade_off.is_ratio ? "training speed, Transformer = 1"
                                           : "training speed, tokens/s",
                      trade_off.quality_name, circles);
}

std::string figure3(const ReportInput& input) {
  std::string text;
  for (const TradeOff& trade_off : {our_trade_off(input), paper_trade_off()}) {
    if (trade_off.points.empty() || !has_benchmark(input)) continue;
    std::vector<std::string> charts = {trade_off_chart(trade_off, false),
                                       trade_off_chart(trade_off, true)};
    std::erase(charts, "");
    text += chart_figure(trade_off.title,
                         trade_off.caption +
                             " Circle area is memory on the left, examples per second on the "
                             "right; lines are Pareto fronts.",
                         charts, trade_off_table(trade_off));
  }
  return text;
}

std::string figure4(const std::vector<Analysis>& analyses) {
  std::vector<std::string> pictures;
  for (const Analysis& analysis : analyses) {
    if (!analysis.record.embeddings) continue;
    const std::string label = analysis_label(analysis.record) + ", " + analysis.record.task;
    const EmbeddingsResult& result = *analysis.record.embeddings;
    add_picture(pictures, analysis, result.token_picture,
                label + ": similarity of each two token embeddings");
    add_picture(pictures, analysis, result.position_picture,
                label + ": similarity of each position embedding with all others");
  }
  return pictures_and_table(similarity_table(analyses),
                            "Red: similar, white: unrelated, blue: opposite.", pictures);
}

std::string figure5(const std::vector<Analysis>& analyses) {
  std::vector<std::string> pictures;
  for (const Analysis& analysis : analyses) {
    if (!analysis.record.rollout) continue;
    for (const RolloutExample& example : analysis.record.rollout->examples) {
      add_picture(pictures, analysis, example.picture,
                  filled("{}, {} example {}: label {}, predicted {}",
                         {analysis_label(analysis.record), analysis.record.task, example.index,
                          example.label, example.prediction}));
    }
  }
  return pictures_and_table(
      rollout_table(analyses),
      "Pictures: the example (of Pathfinder, as in Figure 1), and what its prediction attends to.",
      pictures);
}

constexpr size_t kMaxPanels = 12;  // of a figure: its table has all models

std::string breakdown_figure(const BreakdownGrid& grid) {
  std::vector<std::string> models;
  for (const BreakdownGrid::Run& run : grid.runs) {
    if (std::ranges::find(models, run.model) == models.end()) models.push_back(run.model);
  }
  std::string caption =
      "Percent, with 95 % intervals over the examples of each group; runs of one model together.";
  if (models.size() > kMaxPanels) {
    caption +=
        filled(" The first {} of {} models; the table has all.", {kMaxPanels, models.size()});
    models.resize(kMaxPanels);
  }
  return chart_figure(grid.title, caption, {panel_charts(grid, models)}, breakdown_table(grid));
}

// A line that names what is not among the records, and the command that makes it.
std::string missing_html(bool found, const std::string& what, const std::string& command) {
  if (found) return "";
  return filled("<li>{} among the records ({}).</li>\n", {what, command});
}

std::string missing_analysis_html(const ReportInput& input, const std::string& place,
                                  const std::string& kind) {
  return missing_html(!analyses_of(input.options.analyses, kind).empty(),
                      place + ": no " + kind + " analysis", "lra analyze " + kind);
}

std::string missing_list_html(const ReportInput& input, const std::string& items) {
  if (items.empty() || !has_benchmark(input)) return "";
  return "<ul class=\"notes\">\n" + items + "</ul>\n";
}

}  // namespace

std::string figures_html(const ReportInput& input) {
  return figure2(input.options.analyses) + figure3(input) + figure4(input.options.analyses) +
         figure5(input.options.analyses) +
         missing_list_html(
             input, missing_analysis_html(input, "Figure 2", "span") +
                        missing_analysis_html(input, "Figure 4", "embeddings") +
                        missing_analysis_html(input, "Figures 1 and 5", "rollout") +
                        missing_html(!our_trade_off(input).points.empty(),
                                     "Figure 3, ours: no two models with test accuracies and "
                                     "measurements next to the Transformer's",
                                     "lra bench"));
}

std::string quality_and_speed_html(const ReportInput& input) {
  TradeOff trade_off = training_trade_off(input.board);
  TradeOff ours = our_trade_off(input);
  if (ours.is_average || ours.points.size() > trade_off.points.size()) trade_off = std::move(ours);
  if (trade_off.points.empty()) return "";
  return chart_figure("Quality against training speed",
                      trade_off.caption +
                          " Up and to the right is better; the area of circles is memory, the line "
                          "the Pareto front.",
                      {trade_off_chart(trade_off, false)}, trade_off_table(trade_off));
}

std::string missing_tables_html(const ReportInput& input) {
  std::string items;
  for (const auto& [place, mode] : {std::pair{"Table 2", "train"}, {"Table 4", "infer"}}) {
    items += missing_html(!efficiency_tables(input, mode).empty(),
                          std::string(place) + ": no measurements",
                          std::string("lra bench --mode ") + mode);
  }
  return missing_list_html(input, items +
                                      missing_analysis_html(input, "Table 3", "generalization") +
                                      missing_analysis_html(input, "Table 5", "convergence"));
}

std::string breakdown_html(const ReportInput& input) {
  return concatenated(breakdown_grids(input.options.analyses), breakdown_figure) +
         table_html(class_table(input.options.analyses));
}

}  // namespace lra::report
