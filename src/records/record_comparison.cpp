#include "records/record_comparison.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/counted.h"
#include "io/json.h"
#include "records/step_lines.h"

namespace lra {
namespace {

const char* const kAbsent = "none";

// The shortest text that reads back as the same number.
std::string exact(double x) {
  if (std::isnan(x)) return "nan";
  return json_text(json_number(x));
}

std::string text_of(const std::optional<Evaluation>& e) {
  if (!e) return kAbsent;
  return "step " + std::to_string(e->step) + ", accuracy " + exact(e->accuracy) + ", loss " +
         exact(e->loss) + ", " + std::to_string(e->num_examples) + " examples";
}

std::string text_of(const std::optional<int64_t>& count) {
  return count ? std::to_string(*count) : kAbsent;
}

// The validation made at that step, if any.
std::optional<Evaluation> at_step(const RunRecord& record, int64_t step) {
  for (const Evaluation& e : record.val_curve) {
    if (e.step == step) return e;
  }
  return std::nullopt;
}

// Compares the validations up to `last`.
void add_validations(const RunRecord& recorded, const RunRecord& now, int64_t last,
                     std::vector<Compared>& rows) {
  std::set<int64_t> steps;
  for (const RunRecord* record : {&recorded, &now}) {
    for (const Evaluation& e : record->val_curve) steps.insert(e.step);
  }
  for (const int64_t step : steps) {
    if (step > last) break;
    rows.push_back({"validation at step " + std::to_string(step), text_of(at_step(recorded, step)),
                    text_of(at_step(now, step))});
  }
}

// "step 300, loss 0.66, accuracy 0.59, ..." for every training step of a log up to `last`.
std::map<int64_t, std::string> training_steps(std::string_view log, int64_t last) {
  const std::string name = "metrics.jsonl";
  std::map<int64_t, std::string> steps;
  (void)kept_lines(log, [&](std::string_view line) {
    const StepLine head = step_line_of(line, name);
    if (head.kind != "train" || head.step > last) return false;
    std::string& text = steps[head.step];
    text = "step " + std::to_string(head.step);
    const Json fields = parse_json(line, name);
    for (const auto& [key, value] : fields.items()) {
      if (key == "step" || key == "kind" || key.ends_with("_per_s")) continue;
      text += ", " + key + " " + json_text(value);
    }
    return false;
  });
  return steps;
}

std::string revision_of(const Provenance& p) {
  return p.git_revision + (p.git_dirty.empty() ? "" : " with changes " + p.git_dirty);
}

std::string kernel_of(const Provenance& p, const std::string& op) {
  const auto found = p.kernels.find(op);
  return found == p.kernels.end() ? kAbsent : found->second;
}

}  // namespace

std::vector<Compared> compare_results(const RunRecord& recorded, const RunRecord& now) {
  std::vector<Compared> rows = {
      {"status", to_string(recorded.status), to_string(now.status)},
      {"steps", std::to_string(recorded.steps), std::to_string(now.steps)},
      {"examples", std::to_string(recorded.examples), std::to_string(now.examples)},
      {"tokens", std::to_string(recorded.tokens), std::to_string(now.tokens)},
      {"computed tokens", text_of(recorded.computed_tokens), text_of(now.computed_tokens)},
      {"weights", recorded.weights_hash, now.weights_hash}};
  add_validations(recorded, now, INT64_MAX, rows);
  rows.push_back({"last validation", text_of(recorded.val), text_of(now.val)});
  rows.push_back({"best validation", text_of(recorded.best_val), text_of(now.best_val)});
  rows.push_back({"test", text_of(recorded.test), text_of(now.test)});
  return rows;
}

std::vector<Compared> compare_beginnings(const RunRecord& recorded, const RunRecord& now,
                                         std::string_view recorded_log, std::string_view log,
                                         int64_t step) {
  std::vector<Compared> rows;
  const auto before = training_steps(recorded_log, step), after = training_steps(log, step);
  if (!before.empty()) {
    Compared row{counted(static_cast<int64_t>(before.size()), "logged training step"), "", ""};
    for (const auto& [at, text] : before) {
      const auto found = after.find(at);
      row.recorded = text;
      row.now = found == after.end() ? kAbsent : found->second;
      if (!row.is_equal()) break;
    }
    rows.push_back(row);
  }
  add_validations(recorded, now, step, rows);
  return rows;
}

std::vector<Compared> compare_circumstances(const Provenance& recorded, const Provenance& now) {
  std::vector<Compared> rows = {
      {"version", recorded.lra_version, now.lra_version},
      {"revision", revision_of(recorded), revision_of(now)},
      {"compiler", recorded.compiler, now.compiler},
      {"torch", recorded.torch_version, now.torch_version},
      {"processor", recorded.processor, now.processor},
      {"instruction set", recorded.isa, now.isa},
      {"device", recorded.device, now.device},
      {"threads", std::to_string(recorded.threads), std::to_string(now.threads)},
      {"processes", std::to_string(recorded.ranks.value_or(1)),
       std::to_string(now.ranks.value_or(1))}};
  std::set<std::string> ops;
  for (const Provenance* p : {&recorded, &now}) {
    for (const auto& [op, implementation] : p->kernels) ops.insert(op);
  }
  for (const std::string& op : ops) {
    rows.push_back({"kernel " + op, kernel_of(recorded, op), kernel_of(now, op)});
  }
  return rows;
}

}  // namespace lra
