#include "report/check_record.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"
#include "records/run_identity.h"
#include "report/findings.h"
#include "report/settings.h"

namespace lra::report {
namespace {

// A setting that is a word or a whole number; empty when it is not there.
std::string setting(const ConfigTable& config, const std::string& section, const std::string& key) {
  const ConfigValue* value = find_setting(config, section, key);
  if (!value) return "";
  if (const auto* number = std::get_if<int64_t>(&value->value)) return std::to_string(*number);
  const auto* text = std::get_if<std::string>(&value->value);
  return text ? *text : "";
}

void check_hashes(const RunRecord& record, Findings& findings) {
  findings.expect_equal("config_hash", record.config_hash, config_hash(record.config));
  findings.expect_equal("fingerprint", record.fingerprint,
                        run_fingerprint(record.config_hash, record.data_hash, record.task_version));
}

void check_evaluation(const std::string& what, const Evaluation& e, Findings& findings) {
  const std::string of = what + " at step " + std::to_string(e.step) + ": ";
  if (e.num_examples <= 0 || !(e.accuracy >= 0 && e.accuracy <= 1)) {
    findings.expect(false, of + "accuracy " + std::to_string(e.accuracy) + " of " +
                               thousands(e.num_examples) + " examples");
    return;
  }
  const double right = e.accuracy * static_cast<double>(e.num_examples);
  // A double holds a share of as many examples as there are to far better than this.
  constexpr double kRounding = 1e-6;
  findings.expect(std::abs(right - std::round(right)) <= kRounding * std::max(1.0, right),
                  of + "accuracy " + fixed(e.accuracy, 8) + " is no whole number of " +
                      thousands(e.num_examples) + " examples");
  findings.expect(!(e.loss < 0), of + "loss " + std::to_string(e.loss) + " is below zero");
}

void check_evaluations(const RunRecord& record, Findings& findings) {
  if (record.test) check_evaluation("test", *record.test, findings);
  if (record.val) check_evaluation("validation", *record.val, findings);
  int64_t step = 0;
  for (const Evaluation& e : record.val_curve) {
    check_evaluation("validation", e, findings);
    findings.expect(e.step > step, "the validation curve goes from step " + std::to_string(step) +
                                       " to " + std::to_string(e.step));
    step = e.step;
    findings.expect(!record.best_val || e.accuracy <= record.best_val->accuracy,
                    "the validation at step " + std::to_string(e.step) + ", " +
                        percent(e.accuracy) + ", is above the best one");
  }
  if (record.best_val) check_evaluation("best validation", *record.best_val, findings);
  findings.expect(step <= record.steps, "the validation curve continues after the last step");
}

// Figures that follow from others.
void check_arithmetic(const RunRecord& record, Findings& findings) {
  for (const auto& [what, count] : {std::pair{"steps", record.steps},
                                    {"planned_steps", record.planned_steps},
                                    {"tokens", record.tokens},
                                    {"peak_resident_bytes", record.peak_resident_bytes}}) {
    findings.expect(count >= 0, std::string(what) + " is " + std::to_string(count));
  }
  const std::string batch = setting(record.config, "train", "batch_size");
  if (!batch.empty()) {
    findings.expect_equal("examples", record.examples, record.steps * std::stoll(batch));
  }
  const double tokens = record.train_tokens_per_s * record.train_seconds;
  constexpr double kRounding = 1e-3;
  findings.expect(std::abs(tokens - static_cast<double>(record.tokens)) <=
                      kRounding * static_cast<double>(std::max<int64_t>(1, record.tokens)),
                  "train_tokens_per_s is " + fixed(record.train_tokens_per_s, 1) + "; " +
                      thousands(record.tokens) + " tokens took " + fixed(record.train_seconds, 3) +
                      " s");
  if (record.computed_tokens) {
    findings.expect(*record.computed_tokens >= record.tokens,
                    "computed_tokens is " + thousands(*record.computed_tokens) +
                        ", less than the " + thousands(record.tokens) + " tokens");
  }
  if (record.train_examples_per_s) {
    const double examples = *record.train_examples_per_s * record.train_seconds;
    findings.expect(std::abs(examples - static_cast<double>(record.examples)) <=
                        kRounding * static_cast<double>(std::max<int64_t>(1, record.examples)),
                    "train_examples_per_s is " + fixed(*record.train_examples_per_s, 3) + "; " +
                        thousands(record.examples) + " examples took " +
                        fixed(record.train_seconds, 3) + " s");
  }
  if (record.data_examples) {
    findings.expect_equal("data_examples of the test", record.data_examples->test,
                          record.test_split_examples);
  }
  const std::string checkpoint = setting(record.config, "train", "test_checkpoint");
  findings.expect(
      checkpoint.empty() || record.checkpoint == checkpoint ||
          (checkpoint == "best" && record.checkpoint == "best readable"),
      "checkpoint is " + record.checkpoint + "; train.test_checkpoint is " + checkpoint);
}

void check_budget(const RunRecord& record, Findings& findings) {
  findings.expect(
      record.steps <= record.planned_steps,
      thousands(record.steps) + " steps, and " + thousands(record.planned_steps) + " were planned");
  if (record.status == RunStatus::kDone) {
    findings.expect(record.test.has_value(), "the run is done, but has no test figure");
    findings.expect(record.steps == record.planned_steps || record.ended_by,
                    "the run is done after " + thousands(record.steps) + " of " +
                        thousands(record.planned_steps) + " steps, and does not say why");
  }
  if (record.test) {
    findings.expect(record.test->num_examples <= record.test_split_examples,
                    "tested on " + thousands(record.test->num_examples) + " of " +
                        thousands(record.test_split_examples) + " examples");
  }
}

}  // namespace

std::vector<std::string> check_record(const RunRecord& record) {
  Findings findings;
  if (record.kind != "train") return {};
  check_hashes(record, findings);
  for (const auto& [key, value] : {std::pair{"task", record.task},
                                   {"model", record.model},
                                   {"preset", record.preset},
                                   {"seed", std::to_string(record.seed)}}) {
    findings.expect_equal(std::string("run.") + key + " of the settings",
                          setting(record.config, "run", key), value);
  }
  check_evaluations(record, findings);
  check_arithmetic(record, findings);
  check_budget(record, findings);
  return findings.lines();
}

}  // namespace lra::report
