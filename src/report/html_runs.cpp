#include <sstream>

#include "base/config.h"
#include "base/text_format.h"
#include "report/html_parts.h"
#include "report/markup.h"

namespace lra::report {
namespace {

// Entries of a <dl>; empty values are left out.
class Facts {
 public:
  void add(const std::string& name, const std::string& value) {
    if (!value.empty()) html_ += "<dt>" + html(name) + "</dt><dd>" + html(value) + "</dd>\n";
  }
  void add_count(const std::string& name, int64_t value) {
    if (value > 0) add(name, thousands(value));
  }
  std::string list() const { return html_.empty() ? "" : "<dl>\n" + html_ + "</dl>\n"; }

 private:
  std::string html_;
};

std::string evaluation_text(const std::optional<Evaluation>& evaluation) {
  if (!evaluation) return "";
  return fixed(100 * evaluation->accuracy, 2) + " %, loss " + fixed(evaluation->loss, 4) + ", " +
         thousands(evaluation->num_examples) + " examples, step " + thousands(evaluation->step);
}

std::string duration(double seconds) { return seconds > 0 ? human_duration(seconds) : ""; }

void add_result(const RunRecord& run, Facts& facts) {
  facts.add("failure", run.failure);
  facts.add("test", evaluation_text(run.test));
  facts.add("validation", evaluation_text(run.val));
  facts.add("best validation", evaluation_text(run.best_val));
  facts.add("training", evaluation_text(run.train));
  facts.add("steps", thousands(run.steps) + " of " + thousands(run.planned_steps));
  if (run.ended_by) facts.add("ended early", *run.ended_by);
  if (run.skipped_steps) facts.add("bad steps left out", thousands(*run.skipped_steps));
  if (run.roll_backs) {
    facts.add("rolled back", thousands(*run.roll_backs) + " times, " +
                                 thousands(run.undone_steps.value_or(0)) + " steps left out");
  }
  facts.add_count("parameters", run.num_parameters);
  facts.add("division",
            run.division_reason.empty() ? run.division : run.division + ": " + run.division_reason);
  facts.add("protocol", "validation " + run.validation + ", checkpoint " + run.checkpoint +
                            ", task version " + std::to_string(run.task_version));
  facts.add("training time", duration(run.train_seconds));
  facts.add("whole time", duration(run.total_seconds));
  if (run.train_tokens_per_s > 0) {
    facts.add("speed", rate_text(run.train_tokens_per_s) + " tokens/s");
  }
  if (peak_memory_bytes(run) > 0) {
    facts.add("peak memory", human_bytes(static_cast<uint64_t>(peak_memory_bytes(run))));
  }
}

void add_provenance(const RunRecord& run, Facts& facts) {
  const Provenance& p = run.provenance;
  facts.add("lra", p.lra_version);
  facts.add("revision",
            p.git_dirty.empty() ? p.git_revision : p.git_revision + ", changes " + p.git_dirty);
  facts.add("machine", machine_of(p));
  facts.add("system", p.host_os);
  facts.add("compiler", p.compiler);
  facts.add("torch", p.torch_version);
  std::string kernels;
  for (const auto& [op, choice] : p.kernels) {
    kernels += (kernels.empty() ? "" : ", ") + op + " " + choice;
  }
  facts.add("kernels", kernels);
  facts.add("data", run.data_source + (run.data_hash.empty() ? "" : " " + run.data_hash));
  facts.add("config hash", run.config_hash);
  facts.add("weights hash", run.weights_hash);
  facts.add("fingerprint", run.fingerprint);
  facts.add("started", p.started_utc);
  facts.add("finished", p.finished_utc);
  std::string command;
  for (const std::string& word : p.command) command += (command.empty() ? "" : " ") + word;
  facts.add("command", command);
}

// The lines of the resolved config, each cleaned on its own so that the line ends stay.
std::string config_html(const ConfigTable& config) {
  if (config.empty()) return "";
  std::istringstream lines(to_toml(config));
  std::string text = "<pre tabindex=\"0\">";
  for (std::string line; std::getline(lines, line);) text += html(line) + "\n";
  return text + "</pre>\n";
}

std::string run_html(const RunRecord& run, size_t index) {
  const bool is_bench = run.kind == "bench";
  const bool bad = run.status == RunStatus::kFailed || run.status == RunStatus::kDiverged;
  std::string text = "<details id=\"" + run_id(index) + "\"><summary>" + std::to_string(index + 1) +
                     ". <b>" + html(run.model_title.empty() ? run.model : run.model_title) +
                     "</b> on " + html(run.task_title.empty() ? run.task : run.task_title);
  text +=
      is_bench ? ", measurement" : html(", " + run.preset + ", seed " + std::to_string(run.seed));
  if (run.test) text += ", " + fixed(100 * run.test->accuracy, 2) + " %";
  text += std::string(" <span class=\"status") + (bad ? " bad" : "") + "\">" +
          html(to_string(run.status)) + "</span></summary>\n";
  Facts facts;
  if (!is_bench) add_result(run, facts);
  add_provenance(run, facts);
  return text + facts.list() + config_html(run.config) + "</details>\n";
}

}  // namespace

std::string run_id(size_t index) { return "run-" + std::to_string(index + 1); }

std::string runs_html(const std::vector<RunRecord>& records) {
  std::string text = "<div class=\"runs\">\n";
  for (size_t i = 0; i < records.size(); ++i) text += run_html(records[i], i);
  return text + "</div>\n";
}

}  // namespace lra::report
