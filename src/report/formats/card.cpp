#include "report/report.h"

#include <cctype>

#include "base/text_format.h"
#include "io/json.h"
#include "records/find_setting.h"
#include "report/formats/markup.h"
#include "report/tables/run_facts.h"

namespace lra::report {
namespace {

// JSON's strings are YAML's, too. A reader that knows no head shows it as text: no markup in it.
std::string yaml(const std::string& text) {
  std::string quoted;
  for (const char c : json_text(Json(clean(text)))) {
    if (c == '<') {
      quoted += "\\u003c";
    } else {
      quoted += c;
    }
  }
  return quoted;
}

std::string head(const RunRecord& run) {
  std::string text =
      "---\ntags:\n- long-range-arena\n- " + yaml(run.task) + "\nlibrary_name: lra\n";
  text += "model-index:\n- name: " + yaml(run.model_title) + "\n  results:\n";
  text += "  - task:\n      type: " +
          yaml(is_masked_run(run.config) ? "masked-pretraining" : "long-sequence-classification") +
          "\n      name: " + yaml(run.task_title) + "\n";
  text += "    dataset:\n      type: " + yaml("lra_" + run.task) + "\n      name: " +
          yaml("Long Range Arena, " + run.task + ", version " + std::to_string(run.task_version)) +
          "\n      split: test\n      revision: " + yaml(run.data_hash) + "\n";
  text += "    metrics:\n    - type: accuracy\n      value: ";
  return text + (run.test ? fixed(100 * run.test->accuracy, 4) : "null") + "\n---\n";
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
  for (const std::string& line : setting_texts(run)) settings += "    " + clean(line) + "\n";
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
