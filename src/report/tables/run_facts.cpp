#include "report/tables/run_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>

#include "base/text_format.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

class Facts {
 public:
  void add(const std::string& name, const std::string& value) {
    if (!value.empty()) facts.push_back({name, value});
  }
  void add_evaluation(const std::string& name, const std::optional<Evaluation>& e) {
    if (!e) return;
    add(name, fixed(100 * e->accuracy, 2) + " %, loss " + fixed(e->loss, 4) + ", " +
                  examples_of(*e) + ", step " + thousands(e->step));
  }
  std::vector<Fact> facts;
};

std::string processor_of(const Provenance& p) {
  return (p.processor.empty() ? "unknown processor" : p.processor) + ", " +
         std::to_string(p.threads) + (p.threads == 1 ? " thread" : " threads");
}

// Sets all marks but that of trivial classifiers, which needs an interval: see leaderboard.cpp.
Marks marks_of(const RunRecord& run) {
  Marks marks;
  if (!has_figure(run)) return marks;
  add_mark(marks, MarkKind::kSuspect, suspicion_of(run.data_checks));
  add_mark(marks, MarkKind::kChanged,
           joined({shortfall_of(run), task_changes_of(run), departure_of(run)}));
  return marks;
}

}  // namespace

bool is_on_gpu(const Provenance& p) { return p.device.starts_with("cuda"); }

std::string device_of(const Provenance& p) {
  const size_t name = p.device.find(' ');  // "cuda:0 NVIDIA H100"
  std::string text = !is_on_gpu(p)               ? processor_of(p)
                     : name == std::string::npos ? "GPU"
                                                 : p.device.substr(name + 1);
  for (const std::string_view noise : {"(R)", "(TM)", " Processor", " CPU"}) {
    for (size_t at; (at = text.find(noise)) != std::string::npos;) text.erase(at, noise.size());
  }
  return text;
}

std::string machine_of(const Provenance& p) {
  const auto is_reference = [](const auto& kernel) { return kernel.second == "ref"; };
  return joined({processor_of(p), p.device, p.isa,
                 std::ranges::any_of(p.kernels, is_reference) ? "reference kernels" : ""});
}

std::string revision_of(const Provenance& p) {
  const std::string revision = p.git_revision.empty() ? "unknown" : p.git_revision.substr(0, 10);
  return p.git_dirty.empty() ? revision : revision + "+changes";
}

bool has_figure(const RunRecord& run) {
  return run.status == RunStatus::kDone && run.test && std::isfinite(run.test->accuracy);
}

std::vector<Evaluation> learning_curve(const RunRecord& run) {
  std::vector<Evaluation> curve = run.val_curve;
  std::erase_if(curve, [](const Evaluation& point) { return !std::isfinite(point.accuracy); });
  constexpr size_t kMostPoints = 1000;
  const size_t stretch = 1 + curve.size() / kMostPoints;
  if (stretch == 1) return curve;
  std::vector<Evaluation> thinned;
  for (size_t at = 0; at + 1 < curve.size(); at += stretch) thinned.push_back(curve[at]);
  thinned.push_back(curve.back());
  return thinned;
}

bool is_outside_arena(const RunRecord& run) {
  return run.task.starts_with("custom") || run.division == "diagnostic";
}

std::vector<Fact> result_facts(const RunRecord& run) {
  Facts f;
  f.add("status", to_string(run.status));
  f.add("failure", run.failure);
  f.add_evaluation("test", run.test);
  for (const Mark& mark : marks_of(run)) f.add("mark " + signs_of({mark}), text_of(mark));
  for (const std::string& warning : items_of(run.warnings)) {
    f.add("warning", warning);
  }
  f.add_evaluation("validation", run.val);
  f.add_evaluation("best validation", run.best_val);
  f.add_evaluation("training", run.train);
  f.add("steps", thousands(run.steps) + " of " + thousands(run.planned_steps));
  if (const auto& tuning = run.tuning) {
    f.add("chosen", "1 of " + thousands(tuning->tried) + " settings of " + joined(tuning->varied) +
                        " by " + tuning->chosen_by + ", " + thousands(tuning->steps) +
                        " steps of training in all");
  }
  if (run.initial_weights) f.add("initial weights from", run.initial_weights->origin);
  for (const EarlierPart& part : items_of(run.earlier_parts)) {
    f.add("changed", "after step " + thousands(part.steps) + ": " + part.change);
  }
  f.add("ended early", run.ended_by.value_or(""));
  if (run.skipped_steps > 0) f.add("bad steps skipped", thousands(*run.skipped_steps));
  if (run.roll_backs) {
    f.add("rolled back", thousands(*run.roll_backs) + " times, " +
                             thousands(run.undone_steps.value_or(0)) + " steps left out");
  }
  if (run.num_parameters > 0) f.add("parameters", thousands(run.num_parameters));
  f.add("division", run.division + (run.division_reason.empty() ? "" : ": " + run.division_reason));
  f.add("protocol", "validation " + run.validation + ", checkpoint " + run.checkpoint +
                        ", task version " + std::to_string(run.task_version));
  if (run.train_seconds > 0) f.add("training time", human_duration(run.train_seconds));
  if (run.total_seconds > 0) f.add("whole time", human_duration(run.total_seconds));
  if (run.train_tokens_per_s > 0) f.add("speed", rate_text(run.train_tokens_per_s) + " tokens/s");
  if (run.computed_tokens && run.tokens > 0) {
    f.add("positions computed for each token",
          fixed(static_cast<double>(*run.computed_tokens) / static_cast<double>(run.tokens), 2));
  }
  if (const int64_t peak = peak_memory_bytes(run); peak > 0) {
    f.add("peak memory", memory_text(peak));
  }
  return f.facts;
}

std::vector<Fact> provenance_facts(const RunRecord& run) {
  const Provenance& p = run.provenance;
  Facts f;
  f.add("lra", p.lra_version);
  f.add("revision", p.git_revision + (p.git_dirty.empty() ? "" : ", changes " + p.git_dirty));
  f.add("machine", machine_of(p));
  f.add("system", p.host_os);
  f.add("compiler", p.compiler);
  f.add("torch", p.torch_version);
  std::map<std::string, std::string> kernels;  // by what they are compiled for
  for (const auto& [name, isa] : p.kernels) {
    kernels[isa] += (kernels[isa].empty() ? isa + ": " : ", ") + name;
  }
  const auto kernel_texts = mapped(kernels, [](const auto& entry) { return entry.second; });
  f.add("kernels", joined(kernel_texts, "; "));
  f.add("data", run.data_source + (run.data_hash.empty() ? "" : " " + run.data_hash));
  f.add("config hash", run.config_hash);
  f.add("weights hash", run.weights_hash);
  f.add("fingerprint", run.fingerprint);
  f.add("started", p.started_utc);
  f.add("finished", p.finished_utc);
  f.add("command", joined(p.command, " "));
  return f.facts;
}

std::vector<std::string> toml_lines(const RunRecord& run) {
  std::istringstream toml(to_toml(run.config));
  std::vector<std::string> lines;
  for (std::string line; std::getline(toml, line);) lines.push_back(line);
  return lines;
}

}  // namespace lra::report
