#include "base/text_format.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/tables/run_facts.h"

namespace lra::report {
namespace {

std::string facts_html(const std::vector<Fact>& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    text += "<dt>" + html(name) + "</dt><dd>" + html(value) + "</dd>\n";
  }
  return text;
}

std::string run_html(const RunRecord& run, size_t index) {
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
          "</dl>\n<pre tabindex=\"0\">";
  for (const std::string& line : setting_texts(run)) text += html(line) + "\n";
  return text + "</pre>\n</details>\n";
}

}  // namespace

std::string run_id(size_t index) { return "run-" + std::to_string(index + 1); }

std::string runs_html(const std::vector<RunRecord>& records) {
  std::string text = "<div class=\"runs\">\n";
  for (size_t i = 0; i < records.size(); ++i) text += run_html(records[i], i);
  return text + "</div>\n";
}

}  // namespace lra::report
