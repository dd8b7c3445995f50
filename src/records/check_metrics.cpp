#include "records/check_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text_format.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "records/findings.h"
#include "records/step_lines.h"

namespace lra {
namespace {

constexpr const char* kLog = "metrics.jsonl";
constexpr size_t kMaxLineBytes = 65536;  // a line of the program has a few hundred

// Contents of the lines of a log.
struct Log {
  std::map<int64_t, Evaluation> validations;  // by step
  std::optional<Evaluation> test;
  std::set<int64_t> skipped, roll_backs;
  int64_t last_step = 0, last_speed_step = 0;
  double fastest_tokens_per_s = 0;
};

Evaluation evaluation_of(std::string_view line) {
  const Json json = parse_json(line, kLog);
  JsonFields fields(json, kLog);
  return {.step = fields.get<int64_t>("step"),
          .loss = fields.get<double>("loss"),
          .accuracy = fields.get<double>("accuracy"),
          .num_examples = fields.get<int64_t>("examples"),
          .num_positions = fields.find<int64_t>("positions")};
}

void add_speed(std::string_view line, int64_t step, Log& log) {
  const Json json = parse_json(line, kLog);
  const auto speed = json.find("tokens_per_s");
  if (speed == json.end() || !speed->is_number()) return;
  log.fastest_tokens_per_s = std::max(log.fastest_tokens_per_s, speed->get<double>());
  log.last_speed_step = std::max(log.last_speed_step, step);
}

void add_line(std::string_view line, Log& log) {
  const StepLine head = step_line_of(line, kLog);
  if (head.kind == "train") add_speed(line, head.step, log);
  if (head.kind == "val") log.validations[head.step] = evaluation_of(line);
  if (head.kind == "test") log.test = evaluation_of(line);
  if (head.kind == "skip") log.skipped.insert(head.step);
  if (head.kind == "roll_back") log.roll_backs.insert(head.step);
  log.last_step = std::max(log.last_step, head.step);
}

Log read_log(std::string_view text) {
  Log log;
  (void)kept_lines(text, [&](std::string_view line) {
    if (line.size() <= kMaxLineBytes) add_line(line, log);
    return false;
  });
  return log;
}

// Both files hold the shortest text of the same number.
std::string exact_text(double number) { return json_text(json_number(number)); }

void compare(const std::string& what, const Evaluation& recorded, const Evaluation& logged,
             Findings& findings) {
  const std::string at = " at step " + std::to_string(recorded.step);
  findings.expect_equal(what + ".accuracy" + at, exact_text(recorded.accuracy),
                        exact_text(logged.accuracy));
  findings.expect_equal(what + ".loss" + at, exact_text(recorded.loss), exact_text(logged.loss));
  findings.expect_equal(what + ".num_examples" + at, recorded.num_examples, logged.num_examples);
  findings.expect_equal(what + ".num_positions" + at, recorded.num_positions.value_or(0),
                        logged.num_positions.value_or(0));
}

void compare_validations(const RunRecord& record, const Log& log, Findings& findings) {
  const auto compare_one = [&](const std::string& what, const Evaluation& recorded) {
    const auto logged = log.validations.find(recorded.step);
    if (logged != log.validations.end()) compare(what, recorded, logged->second, findings);
  };
  if (record.val) compare_one("val", *record.val);
  if (record.best_val) compare_one("best_val", *record.best_val);
  for (const Evaluation& e : record.val_curve) compare_one("val_curve", e);
}

// "3 validations, the first at step 500"
std::string count_text(const std::set<int64_t>& steps) {
  if (steps.empty()) return "";
  return std::to_string(steps.size()) + (steps.size() == 1 ? " validation" : " validations") +
         ", the first at step " + std::to_string(*steps.begin());
}

// Nothing is added to a run that is done, so log and record must end with the same step.
void compare_ends(const RunRecord& record, const Log& log, Findings& findings) {
  std::set<int64_t> unlogged, unrecorded;
  for (const auto& [step, evaluation] : log.validations) unrecorded.insert(step);
  const auto look_up = [&](const Evaluation& e) {
    if (!log.validations.contains(e.step)) unlogged.insert(e.step);
    unrecorded.erase(e.step);
  };
  for (const Evaluation& e : record.val_curve) look_up(e);
  if (record.val) look_up(*record.val);
  if (record.best_val) look_up(*record.best_val);
  findings.expect(unlogged.empty(), std::string(kLog) + " lacks " + count_text(unlogged));
  findings.expect(unrecorded.empty(), "the record lacks " + count_text(unrecorded));
  findings.expect(!record.test || log.test, std::string(kLog) + " lacks the test");
  findings.expect_equal("steps", record.steps, log.last_step);
  findings.expect_equal("skipped_steps", record.skipped_steps.value_or(0),
                        static_cast<int64_t>(log.skipped.size()));
  findings.expect_equal("roll_backs", record.roll_backs.value_or(0),
                        static_cast<int64_t>(log.roll_backs.size()));
}

// If half of the steps were logged, all of them together are at most twice as fast as the fastest
// logged ones, however short the others took.
void compare_speeds(const RunRecord& record, const Log& log, Findings& findings) {
  if (record.steps == 0 || 2 * log.last_speed_step < record.steps) return;
  findings.expect(record.train_tokens_per_s <= 2 * log.fastest_tokens_per_s,
                  "train_tokens_per_s is " + thousands(std::llround(record.train_tokens_per_s)) +
                      "; " + kLog + " says at most " +
                      thousands(std::llround(log.fastest_tokens_per_s)));
}

}  // namespace

std::vector<std::string> check_metrics(const RunRecord& record, std::string_view metrics) {
  const Log log = read_log(metrics);
  Findings findings(std::string(kLog) + " says");
  compare_validations(record, log, findings);
  if (record.test && log.test) {
    findings.expect_equal("test.step", record.test->step, log.test->step);
    compare("test", *record.test, *log.test, findings);
  }
  if (record.status == RunStatus::kDone) compare_ends(record, log, findings);
  compare_speeds(record, log, findings);
  return findings.lines();
}

std::vector<std::string> check_metrics_beside(const RunRecord& record,
                                              const std::string& record_path) {
  const std::filesystem::path path = record_path;
  if (record.kind != "train" || path.filename() != "record.json") return {};
  const std::string log = folder_of(record_path) + "/" + kLog;
  std::error_code error;
  if (!std::filesystem::exists(log, error) && !error) return {};
  try {
    const MappedFile file(log);
    return check_metrics(record,
                         {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  } catch (const Error& problem) {
    return {problem.what()};
  }
}

}  // namespace lra
