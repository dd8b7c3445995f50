#include "report/card.h"

#include <algorithm>
#include <cctype>

#include "base/config.h"
#include "base/text_format.h"
#include "io/json.h"
#include "report/markup.h"
#include "report/shortfall.h"
#include "report/speed.h"

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

std::string title_of(const RunRecord& run) {
  return run.model_title.empty() ? run.model : run.model_title;
}

std::string head(const RunRecord& run) {
  std::string text =
      "---\ntags:\n- long-range-arena\n- " + yaml(run.task) + "\nlibrary_name: lra\n";
  text += "model-index:\n- name: " + yaml(title_of(run)) + "\n  results:\n";
  text += "  - task:\n      type: " + yaml("long-sequence-classification") +
          "\n      name: " + yaml(run.task_title.empty() ? run.task : run.task_title) + "\n";
  text += "    dataset:\n      type: " + yaml("lra_" + run.task) + "\n      name: " +
          yaml("Long Range Arena, " + run.task + ", version " + std::to_string(run.task_version)) +
          "\n      split: test\n      revision: " + yaml(run.data_hash) + "\n";
  text += "    metrics:\n    - type: accuracy\n      value: ";
  return text + (run.test ? fixed(100 * run.test->accuracy, 4) : "null") + "\n---\n";
}

std::string line(const std::string& name, const std::string& value) {
  return value.empty() ? "" : "| " + name + " | " + markdown(value) + " |\n";
}

std::string evaluation_text(const std::optional<Evaluation>& e) {
  if (!e) return "";
  return fixed(100 * e->accuracy, 2) + " % of " + thousands(e->num_examples) + " examples";
}

std::string result_table(const RunRecord& run) {
  const std::string shortfall = run.test ? shortfall_of(run) : "";
  return "| result | |\n| --- | --- |\n" + line("status", to_string(run.status)) +
         line("failure", run.failure) + line("test accuracy", evaluation_text(run.test)) +
         line("less than a full run", shortfall) +
         line("best validation", evaluation_text(run.best_val)) +
         line("steps", thousands(run.steps) + " of " + thousands(run.planned_steps)) +
         line("parameters", thousands(run.num_parameters)) +
         line("training time", human_duration(run.train_seconds)) +
         line("peak memory", human_bytes(static_cast<uint64_t>(peak_memory_bytes(run))));
}

std::string protocol_table(const RunRecord& run) {
  const Provenance& p = run.provenance;
  std::string command;
  for (const std::string& word : p.command) command += (command.empty() ? "" : " ") + word;
  return "| protocol and provenance | |\n| --- | --- |\n" + line("preset", run.preset) +
         line("seed", std::to_string(run.seed)) + line("validation", run.validation) +
         line("tested weights", run.checkpoint) +
         line("division",
              run.division + (run.division_reason.empty() ? "" : ": ") + run.division_reason) +
         line("data", run.data_source + " " + run.data_hash) +
         line("fingerprint", run.fingerprint) + line("weights", run.weights_hash) +
         line("revision", revision_of(p)) + line("machine", machine_of(p)) +
         line("compiler, torch", p.compiler + ", " + p.torch_version) +
         line("finished", p.finished_utc) + line("command", command);
}

// Indented by four, so that no setting can end the block; a card has no other code.
std::string settings_block(const ConfigTable& config) {
  std::string text, toml = to_toml(config);
  for (size_t begin = 0; begin < toml.size();) {
    const size_t end = std::min(toml.find('\n', begin), toml.size());
    text += "    " + clean(toml.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return text;
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
  const std::string task = run.task_title.empty() ? run.task : run.task_title;
  return head(run) + "\n# " + markdown(title_of(run)) + " on " + markdown(task) + "\n\n" +
         result_table(run) + "\n" + protocol_table(run) + "\nSettings:\n\n" +
         settings_block(run.config) +
         "\nMade by `lra report --card` from the record of the run; `lra reproduce` runs it "
         "again.\n";
}

std::string card_name(const RunRecord& run) {
  return plain(run.model) + "-" + plain(run.task) + "-seed" + std::to_string(run.seed) + "-" +
         plain(run.fingerprint.substr(0, 8)) + ".md";
}

}  // namespace lra::report
