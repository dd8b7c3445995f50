// Figures 1 to 5 of the paper, from our records.
#include <algorithm>
#include <set>
#include <utility>

#include "base/text_format.h"
#include "report/chart.h"
#include "report/csp_hash.h"
#include "report/html_parts.h"
#include "report/markup.h"
#include "report/trade_off.h"

namespace lra::report {
namespace {

constexpr size_t kMostPictures = 12;  // of a kind: a page stays small

// Empty when the record's picture could not be read.
std::string picture_html(const Analysis& analysis, const std::string& name,
                         const std::string& caption) {
  const auto found = analysis.pictures.find(name);
  if (found == analysis.pictures.end()) return "";
  return "<figure><img src=\"data:image/png;base64," + base64(found->second) + "\" alt=\"" +
         html(caption) + "\"><figcaption>" + html(caption) + "</figcaption></figure>\n";
}

std::string pictures_html(const std::string& title, const std::string& caption,
                          const std::vector<std::string>& pictures) {
  std::string text;
  for (size_t i = 0; i < pictures.size() && i < kMostPictures; ++i) text += pictures[i];
  if (text.empty()) return "";
  if (pictures.size() > kMostPictures) {
    text += "<p class=\"caption\">The first " + std::to_string(kMostPictures) + " of " +
            std::to_string(pictures.size()) + ".</p>\n";
  }
  return "<h3>" + html(title) + "</h3>\n<p class=\"caption\">" + html(caption) +
         "</p>\n<div class=\"pictures\">\n" + text + "</div>\n";
}

std::string pictures_and_table(const Table& table, const std::string& caption,
                               const std::vector<std::string>& pictures) {
  if (table.rows.empty()) return "";
  const std::string shown = pictures_html(table.title, caption + " " + table.caption, pictures);
  return shown.empty() ? table_html(table) : shown + bare_table_html(table);
}

void add(std::vector<std::string>& pictures, std::string picture) {
  if (!picture.empty()) pictures.push_back(std::move(picture));
}

std::string example_caption(const AnalysisRecord& record, const RolloutExample& example) {
  return analysis_label(record) + ", " + record.task + " example " + std::to_string(example.index) +
         ": label " + std::to_string(example.label) + ", predicted " +
         std::to_string(example.prediction);
}

// One positive and one negative Pathfinder image.
std::string figure1(const std::vector<Analysis>& analyses) {
  std::vector<std::string> pictures;
  for (const int64_t label : {1, 0}) {
    for (const Analysis& analysis : analyses) {
      const AnalysisRecord& record = analysis.record;
      if (!record.rollout || paper_task(record.task) != PaperTask::kPathfinder) continue;
      if (pictures.size() > static_cast<size_t>(1 - label)) break;
      for (const RolloutExample& example : record.rollout->examples) {
        if (example.label != label) continue;
        add(pictures, picture_html(analysis, example.picture,
                                   label ? "A positive example: connected"
                                         : "A negative example: not connected"));
        break;
      }
    }
  }
  return pictures_html("Figure 1: Pathfinder",
                       "The image is on the left, the attention of Figure 5 next to it.", pictures);
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
      bare_table_html(table));
}

std::string remark_of(const TradeOff& trade_off, const TradeOffPoint& point) {
  std::string text =
      point.title + ": " + fixed(point.quality, 2) + " %, " + speed_text(trade_off, point);
  if (point.examples_per_s) text += ", " + rate_text(point.examples_per_s) + " examples/s";
  if (point.memory_gb) text += ", " + fixed(*point.memory_gb, 2) + " GB";
  return text;
}

std::string speed_chart(const TradeOff& trade_off) {
  std::vector<ChartCircle> circles;
  for (const TradeOffPoint& p : trade_off.points) {
    circles.push_back({p.title,
                       remark_of(trade_off, p),
                       {p.speed, p.quality},
                       p.memory_gb.value_or(0),
                       p.on_speed_front});
  }
  return circle_chart(
      "Quality against training speed; the area of circles is memory, the line the Pareto front.",
      trade_off.speed_name, trade_off.quality_name, circles);
}

std::string memory_chart(const TradeOff& trade_off) {
  std::vector<ChartCircle> circles;
  for (const TradeOffPoint& p : trade_off.points) {
    if (!p.memory_gb) continue;
    circles.push_back({p.title,
                       remark_of(trade_off, p),
                       {*p.memory_gb, p.quality},
                       p.examples_per_s.value_or(0),
                       p.on_memory_front});
  }
  if (circles.empty()) return "";
  return circle_chart(
      "Quality against memory; the area of circles is examples per second, the line the Pareto "
      "front.",
      "memory, GB", trade_off.quality_name, circles);
}

std::string figure3(const ReportInput& input) {
  std::string text;
  for (const TradeOff& trade_off : {our_trade_off(input), paper_trade_off()}) {
    if (trade_off.points.empty()) continue;
    std::vector<std::string> charts = {speed_chart(trade_off), memory_chart(trade_off)};
    std::erase(charts, "");
    text += chart_figure(trade_off.title,
                         trade_off.caption +
                             " Circle area is memory on the left, examples per second on the "
                             "right; lines are Pareto fronts.",
                         charts, bare_table_html(trade_off_table(trade_off)));
  }
  return text;
}

std::string figure4(const std::vector<Analysis>& analyses) {
  std::vector<std::string> pictures;
  for (const Analysis& analysis : analyses) {
    if (!analysis.record.embeddings) continue;
    const std::string label = analysis_label(analysis.record) + ", " + analysis.record.task;
    const EmbeddingsResult& result = *analysis.record.embeddings;
    add(pictures, picture_html(analysis, result.token_picture,
                               label + ": similarity of each two token embeddings"));
    add(pictures, picture_html(analysis, result.position_picture,
                               label + ": similarity of each position embedding with all others"));
  }
  const Table table = similarity_table(analyses);
  return pictures_and_table(table, "Red: similar, white: unrelated, blue: opposite.", pictures);
}

// Analyses with a rollout, the paper's own case first: the Transformer on Pathfinder, then the
// Transformer on other tasks.
std::vector<const Analysis*> in_order_of_figure5(const std::vector<Analysis>& analyses) {
  std::vector<const Analysis*> ordered;
  for (const Analysis& analysis : analyses) {
    if (analysis.record.rollout) ordered.push_back(&analysis);
  }
  const auto rank = [](const Analysis* analysis) {
    const bool is_transformer = analysis->record.model == "transformer";
    return std::pair(!is_transformer, analysis->record.task != "pathfinder");
  };
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  return ordered;
}

std::string figure5(const std::vector<Analysis>& analyses) {
  std::vector<std::string> pictures;
  for (const Analysis* analysis : in_order_of_figure5(analyses)) {
    for (const RolloutExample& example : analysis->record.rollout->examples) {
      add(pictures,
          picture_html(*analysis, example.picture, example_caption(analysis->record, example)));
    }
  }
  const Table table = rollout_table(analyses);
  return pictures_and_table(table, "Pictures: the example, and what its prediction attends to.",
                            pictures);
}

struct Missing {
  const char* figure;
  const char* kind;  // of analysis
};

// Lists the analyses that are not among the records, and how to make them.
std::string missing_analyses(const ReportInput& input, std::initializer_list<Missing> wanted) {
  std::string items;
  for (const auto& [figure, kind] : wanted) {
    bool found = false;
    for (const Analysis& analysis : input.analyses) found |= analysis.record.kind == kind;
    if (!found) {
      items += std::string("<li>") + figure + ": no " + kind +
               " analysis among the records (lra analyze " + kind + ").</li>\n";
    }
  }
  return items;
}

std::string notes_list(const std::string& items) {
  return items.empty() ? "" : "<ul class=\"notes\">\n" + items + "</ul>\n";
}

}  // namespace

std::string figures_html(const ReportInput& input) {
  std::string missing = missing_analyses(
      input, {{"Figure 2", "span"}, {"Figure 4", "embeddings"}, {"Figures 1 and 5", "rollout"}});
  if (our_trade_off(input).points.empty()) {
    missing +=
        "<li>Figure 3, ours: no two models with test accuracies and measurements beside the "
        "Transformer's (lra bench).</li>\n";
  }
  return figure1(input.analyses) + figure2(input.analyses) + figure3(input) +
         figure4(input.analyses) + figure5(input.analyses) + notes_list(missing);
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
                      {speed_chart(trade_off)}, bare_table_html(trade_off_table(trade_off)));
}

std::string missing_tables_html(const ReportInput& input) {
  std::string missing;
  for (const auto& [table, mode] : {std::pair{"Table 2", "train"}, {"Table 4", "infer"}}) {
    bool found = false;
    for (const SpeedGrid& grid : input.grids) found |= grid.mode == mode;
    if (!found) {
      missing += std::string("<li>") + table +
                 ": no measurements among the records (lra bench --mode " + mode + ").</li>\n";
    }
  }
  return notes_list(missing + missing_analyses(input, {{"Table 3", "generalization"},
                                                       {"Table 5", "convergence"}}));
}

}  // namespace lra::report
