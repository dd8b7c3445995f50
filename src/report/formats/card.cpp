#include "report/report.h"

#include <cctype>

#include "base/text_format.h"
#include "io/json.h"
#include "records/find_setting.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

// JSON's strings are YAML's, too. A reader that knows no head shows it as text: no markup in it.
std::string yaml(const std::string& text) {
  std::string quoted = json_text(Json(clean(text)));
  for (size_t at; (at = quoted.find('<')) != std::string::npos;) quoted.replace(at, 1, "\\u003c");
  return quoted;
}

std::string head(const RunRecord& run) {
  const char* type =
      is_masked_run(run.config) ? "masked-pretraining" : "long-sequence-classification";
  const std::string version = ", version " + std::to_string(run.task_version);
  return filled(
      "---\ntags:\n- long-range-arena\n- {}\nlibrary_name: lra\nmodel-index:\n- name: {}\n"
      "  results:\n  - task:\n      type: {}\n      name: {}\n    dataset:\n      type: {}\n"
      "      name: {}\n      split: test\n      revision: {}\n"
      "    metrics:\n    - type: accuracy\n      value: {}\n---\n",
      {yaml(run.task), yaml(run.model_title), yaml(type), yaml(run.task_title),
       yaml("lra_" + run.task), yaml("Long Range Arena, " + run.task + version),
       yaml(run.data_hash), run.test ? fixed(100 * run.test->accuracy, 4) : "null"});
}

std::string facts_table(const std::string& title, const std::vector<Fact>& facts) {
  std::string text = "| " + title + " | |\n| --- | --- |\n";
  for (const auto& [name, value] : facts) text += "| " + name + " | " + markdown(value) + " |\n";
  return text + "\n";
}

std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 60)) {
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '-';
  }
  return out;
}

}  // namespace

std::string results_card(const RunRecord& run) {
  // Indented by four, so that no setting can end the block; a card has no other code.
  std::string settings;
  for (const std::string& line : toml_lines(run)) settings += "    " + clean(line) + "\n";
  return head(run) + "\n# " + markdown(run.model_title) + " on " + markdown(run.task_title) +
         "\n\n" + facts_table("result", result_facts(run)) +
         facts_table("provenance", provenance_facts(run)) + "Settings:\n\n" + settings +
         "\nMade by `lra report --card` from the record of the run; `lra reproduce` repeats it.\n";
}

std::string card_name(const RunRecord& run) {
  return plain(run.model) + "-" + plain(run.task) + "-seed" + std::to_string(run.seed) + "-" +
         plain(run.fingerprint.substr(0, 8)) + ".md";
}

}  // namespace lra::report
