#include "records/check_record.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"
#include "records/find_setting.h"
#include "records/run_identity.h"

namespace lra {
namespace {

// A setting that is a word or a whole number; empty when it is not there.
std::string setting(const ConfigTable& config, const std::string& section, const std::string& key) {
  if (const auto number = find_setting_as<int64_t>(config, section, key)) {
    return std::to_string(*number);
  }
  return find_setting_as<std::string>(config, section, key).value_or("");
}

void check_identity(const RunRecord& record, Findings& findings) {
  findings.expect_equal("config_hash", record.config_hash, config_hash(record.config));
  // Measurements read no data, and a run that failed before it began had none yet.
  const bool has_data = !record.data_hash.empty();
  findings.expect_equal(
      "fingerprint", record.fingerprint,
      has_data ? run_fingerprint(record.config_hash, record.data_hash, record.task_version) : "");
  for (const auto& [key, value] : {std::pair{"task", record.task},
                                   {"model", record.model},
                                   {"preset", record.preset},
                                   {"seed", std::to_string(record.seed)}}) {
    findings.expect_equal(std::string("run.") + key + " of the settings",
                          setting(record.config, "run", key), value);
  }
}

// True if `speed` times `seconds` is `count`, up to rounding.
bool is_speed(double speed, double seconds, int64_t count) {
  constexpr double kRounding = 1e-3;
  const auto wanted = static_cast<double>(count);
  return std::abs(speed * seconds - wanted) <= kRounding * std::max(1.0, wanted);
}

void check_counts(const RunRecord& record, Findings& findings) {
  for (const auto& [what, count] : {std::pair{"steps", record.steps},
                                    {"planned_steps", record.planned_steps},
                                    {"preset_steps", record.preset_steps},
                                    {"test_split_examples", record.test_split_examples},
                                    {"tokens", record.tokens},
                                    {"num_parameters", record.num_parameters},
                                    {"base_parameters", record.base_parameters},
                                    {"skipped_steps", record.skipped_steps.value_or(0)},
                                    {"roll_backs", record.roll_backs.value_or(0)},
                                    {"undone_steps", record.undone_steps.value_or(0)},
                                    {"peak_resident_bytes", record.peak_resident_bytes}}) {
    findings.expect(count >= 0, std::string(what) + " is " + std::to_string(count));
  }
  if (record.computed_tokens) {
    findings.expect(*record.computed_tokens >= record.tokens,
                    "computed_tokens is " + thousands(*record.computed_tokens) +
                        ", less than the " + thousands(record.tokens) + " tokens");
  }
  findings.expect(!record.computed_tokens || record.data_examples,
                  "computed_tokens is there, and data_examples is not");
  if (record.data_examples) {
    findings.expect_equal("data_examples of the test", record.data_examples->test,
                          record.test_split_examples);
  }
}

// Figures that follow from others.
void check_arithmetic(const RunRecord& record, Findings& findings) {
  if (const auto batch = find_setting_as<int64_t>(record.config, "train", "batch_size")) {
    findings.expect_equal("examples", record.examples, record.steps * *batch);
  }
  const auto took = [&](int64_t count, const char* what) {
    return "; " + thousands(count) + what + " took " + fixed(record.train_seconds, 3) + " s";
  };
  findings.expect(is_speed(record.train_tokens_per_s, record.train_seconds, record.tokens),
                  "train_tokens_per_s is " + fixed(record.train_tokens_per_s, 1) +
                      took(record.tokens, " tokens"));
  if (record.train_examples_per_s) {
    findings.expect(is_speed(*record.train_examples_per_s, record.train_seconds, record.examples),
                    "train_examples_per_s is " + fixed(*record.train_examples_per_s, 3) +
                        took(record.examples, " examples"));
  }
  findings.expect(record.train_seconds <= record.total_seconds,
                  "train_seconds is " + fixed(record.train_seconds, 3) + ", more than all " +
                      fixed(record.total_seconds, 3) + " s of the run");
  const std::string checkpoint = setting(record.config, "train", "test_checkpoint");
  findings.expect(
      checkpoint.empty() || record.data_hash.empty() || record.checkpoint == checkpoint ||
          (checkpoint == "best" && record.checkpoint == "best readable") ||
          (checkpoint == "best" && record.checkpoint == "last" && !record.val_curve.empty() &&
           record.val_curve.back().num_examples < kFewestToChoose),
      "checkpoint is " + record.checkpoint + "; train.test_checkpoint is " + checkpoint);
}

void check_budget(const RunRecord& record, Findings& findings) {
  findings.expect(
      record.steps <= record.planned_steps,
      thousands(record.steps) + " steps, and " + thousands(record.planned_steps) + " were planned");
  findings.expect(record.steps == 0 || !record.data_hash.empty(),
                  thousands(record.steps) + " steps, and no data");
  if (record.test) {
    findings.expect(record.test->num_examples <= record.test_split_examples,
                    "tested on " + thousands(record.test->num_examples) + " of " +
                        thousands(record.test_split_examples) + " examples");
  }
  if (record.status != RunStatus::kDone) return;
  findings.expect(record.test.has_value(), "the run is done, but has no test figure");
  findings.expect(record.steps == record.planned_steps || record.ended_by,
                  "the run is done after " + thousands(record.steps) + " of " +
                      thousands(record.planned_steps) + " steps, and does not say why");
  findings.expect(record.steps > 0, "the run is done after no step");
  findings.expect(record.failure.empty(), "the run is done, and failed: " + record.failure);
  findings.expect(!record.weights_hash.empty(), "the run is done, and has no weights_hash");
}

// Trivial classifiers are tested on the whole test split.
void check_baselines(const RunRecord& record, Findings& findings) {
  for (const auto& [name, accuracy] : record.baselines) {
    findings.expect(is_share(accuracy, record.test_split_examples),
                    "the baseline '" + name + "', " + fixed(accuracy, 8) +
                        ", is no whole number of " + thousands(record.test_split_examples) +
                        " examples");
  }
  if (record.status != RunStatus::kDone || is_masked_run(record.config)) return;
  findings.expect(record.baselines.contains("majority"),
                  "the run is done, and has no baseline 'majority'");
}

void check_measurement(const Measurement& m, Findings& findings) {
  const std::string of = m.mode + " at length " + std::to_string(m.length) + ": ";
  findings.expect(m.slowest_steps_per_s <= m.steps_per_s && m.steps_per_s <= m.fastest_steps_per_s,
                  of + fixed(m.steps_per_s, 3) + " steps/s is not between the slowest window, " +
                      fixed(m.slowest_steps_per_s, 3) + ", and the fastest, " +
                      fixed(m.fastest_steps_per_s, 3));
  findings.expect(m.steps_per_s > 0 && m.windows > 0 && m.length > 0 && m.batch > 0,
                  of + "no speed, window, length or batch");
  findings.expect(m.peak_resident_bytes >= 0 && m.peak_tensor_bytes >= 0 && m.model_flops >= 0,
                  of + "memory or operations below zero");
  if (m.examples_per_s && m.steps_per_s > 0) {
    findings.expect(is_speed(*m.examples_per_s / m.steps_per_s, 1, m.batch),
                    of + fixed(*m.examples_per_s, 3) + " examples/s in " + fixed(m.steps_per_s, 3) +
                        " steps/s of " + std::to_string(m.batch));
  }
}

// A record of lra bench, which trains nothing.
void check_measurements(const RunRecord& record, Findings& findings) {
  findings.expect(!record.test && !record.val && !record.best_val && !record.train &&
                      record.val_curve.empty() && record.steps == 0,
                  "kind is bench, and there are figures of training");
  findings.expect(record.status != RunStatus::kDone || !record.measurements.empty(),
                  "kind is bench, and there is no measurement");
  for (const Measurement& m : record.measurements) check_measurement(m, findings);
}

}  // namespace

std::vector<std::string> check_record(const RunRecord& record) {
  Findings findings;
  check_identity(record, findings);
  check_counts(record, findings);
  if (record.kind == "bench") {
    check_measurements(record, findings);
    return findings.lines();
  }
  findings.expect(record.measurements.empty(), "kind is train, and there are measurements");
  check_evaluations(record, findings);
  check_arithmetic(record, findings);
  check_budget(record, findings);
  check_baselines(record, findings);
  return findings.lines();
}

void refuse_findings(const std::vector<std::string>& findings, const std::string& path) {
  if (findings.empty()) return;
  throw Error(
      {.where = path,
       .what = findings.front(),
       .expected = "a record as the run left it",
       .advice =
           "restore it, or repeat the run; 'lra report --check' lists everything that is wrong"});
}

RunRecord read_consistent_record(const std::string& path) {
  RunRecord record = read_record(path);
  std::vector<std::string> findings = check_record(record);
  if (findings.empty()) findings = check_metrics_beside(record, path);
  refuse_findings(findings, path);
  return record;
}

}  // namespace lra
