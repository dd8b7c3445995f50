#include <algorithm>

#include "base/text_format.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/tables/run_facts.h"
#include "report/tables/settings.h"

namespace lra::report {
namespace {

std::string facts_html(const std::vector<Fact>& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    text += "<dt>" + html(name) + "</dt><dd>" + html(value) + "</dd>\n";
  }
  return text;
}

// The settings, or how they differ from those of the first run of this model and task.
std::string settings_html(const std::vector<RunRecord>& records, size_t index) {
  const RunRecord& run = records[index];
  const auto first = std::ranges::find_if(records, [&](const RunRecord& other) {
    return other.model == run.model && other.task == run.task && other.kind == run.kind;
  });
  const auto place = static_cast<size_t>(first - records.begin());
  std::string text = "<pre tabindex=\"0\">";
  if (place == index) {
    for (const std::string& line : setting_texts(run)) text += html(line) + "\n";
    return text + "</pre>\n";
  }
  const SettingLines base = setting_lines(first->config);
  for (const std::string& line : setting_lines(run.config)) {
    if (!base.contains(line)) text += html(line) + "\n";
  }
  return "<p>Settings: those of <a href=\"#" + run_id(place) + "\">run " +
         std::to_string(place + 1) + "</a>, but for these and the seed.</p>\n" + text + "</pre>\n";
}

std::string run_html(const std::vector<RunRecord>& records, size_t index) {
  const RunRecord& run = records[index];
  const bool is_bench = run.kind == "bench";
  const bool bad = run.status == RunStatus::kFailed || run.status == RunStatus::kDiverged;
  std::string text = "<details id=\"" + run_id(index) + "\"><summary>Run " +
                     std::to_string(index + 1) + ": <b>" + html(run.model_title) + "</b> on " +
                     html(run.task_title);
  text +=
      is_bench ? ", measurement" : html(", " + run.preset + ", seed " + std::to_string(run.seed));
  if (run.test) text += ", " + fixed(100 * run.test->accuracy, 2) + " %";
  text += std::string(" <span class=\"status") + (bad ? " bad" : "") + "\">" +
          html(to_string(run.status)) + "</span></summary>\n<dl>\n" +
          (is_bench ? "" : facts_html(result_facts(run))) + facts_html(provenance_facts(run)) +
          "</dl>\n" + settings_html(records, index) + "</details>\n";
  return text;
}

}  // namespace

std::string run_id(size_t index) { return "run-" + std::to_string(index + 1); }

std::string runs_html(const std::vector<RunRecord>& records) {
  std::string text = "<div class=\"runs\">\n";
  for (size_t i = 0; i < records.size(); ++i) text += run_html(records, i);
  return text + "</div>\n";
}

}  // namespace lra::report
