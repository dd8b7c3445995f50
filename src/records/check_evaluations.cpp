#include <algorithm>
#include <cmath>
#include <set>

#include "base/text_format.h"
#include "records/check_record.h"
#include "records/find_setting.h"

namespace lra {
namespace {

bool is_same(const Evaluation& a, const Evaluation& b) {
  return a.step == b.step && a.accuracy == b.accuracy && a.num_examples == b.num_examples;
}

void check_evaluation(const std::string& what, const Evaluation& e, Findings& findings) {
  const std::string of = what + " at step " + std::to_string(e.step) + ": ";
  if (e.num_examples <= 0 || !(e.accuracy >= 0 && e.accuracy <= 1)) {
    findings.expect(false, of + "accuracy " + std::to_string(e.accuracy) + " of " +
                               thousands(e.num_examples) + " examples");
    return;
  }
  const int64_t labels = e.num_positions.value_or(e.num_examples);
  findings.expect(is_share(e.accuracy, labels), of + "accuracy " + fixed(e.accuracy, 8) +
                                                    " is no whole number of " + thousands(labels) +
                                                    (e.num_positions ? " positions" : " examples"));
  findings.expect(!(e.loss < 0), of + "loss " + std::to_string(e.loss) + " is below zero");
}

// Steps of the curve ascend, its last entry is the last validation, its first best one the best.
void check_curve(const RunRecord& record, Findings& findings) {
  int64_t step = 0;
  const Evaluation* best = nullptr;
  for (const Evaluation& e : record.val_curve) {
    check_evaluation("validation", e, findings);
    findings.expect(e.step > step, "the validation curve goes from step " + std::to_string(step) +
                                       " to " + std::to_string(e.step));
    step = e.step;
    findings.expect(!record.best_val || e.accuracy <= record.best_val->accuracy,
                    "the validation at step " + std::to_string(e.step) + ", " +
                        percent(e.accuracy) + ", is above the best one");
    if (!best || e.accuracy > best->accuracy) best = &e;
  }
  findings.expect(step <= record.steps, "the validation curve continues after the last step");
  findings.expect(best ? record.val && is_same(*record.val, record.val_curve.back()) : !record.val,
                  "val is not the last validation of the curve");
  findings.expect(!record.best_val == !best, "best_val is not in the validation curve");
  if (!best || !record.best_val || best->accuracy > record.best_val->accuracy) return;
  findings.expect(is_same(*best, *record.best_val),
                  "best_val is of step " + std::to_string(record.best_val->step) +
                      "; the best of the curve is of step " + std::to_string(best->step));
}

// Validations come every train.eval_every steps and after the last one. Settings of a run that was
// trained on were others before.
void check_validation_steps(const RunRecord& record, Findings& findings) {
  const auto every = find_setting_as<int64_t>(record.config, "train", "eval_every");
  if (record.earlier_parts || !every || *every <= 0) return;
  for (const Evaluation& e : record.val_curve) {
    findings.expect(e.step % *every == 0 || e.step == record.steps,
                    "a validation at step " + std::to_string(e.step) + "; train.eval_every is " +
                        std::to_string(*every));
  }
  if (record.status != RunStatus::kDone) return;
  findings.expect_equal("the number of validations", static_cast<int64_t>(record.val_curve.size()),
                        (record.steps + *every - 1) / *every);
}

// `limit` is the setting that names how many of the split's `size` examples are used; 0: all.
void check_count(const RunRecord& record, const std::string& what, const Evaluation& e,
                 const char* limit, int64_t size, Findings& findings) {
  const auto most = find_setting_as<int64_t>(record.config, "train", limit);
  if (record.earlier_parts || !most || size <= 0) return;
  const int64_t expected = *most > 0 ? std::min(*most, size) : size;
  if (e.num_examples == expected) return;
  findings.expect(false, what + " at step " + std::to_string(e.step) + " is of " +
                             thousands(e.num_examples) + " examples; expected " +
                             thousands(expected) + " of " + thousands(size));
}

// The number of examples that a validation can use; 0: unknown. A held-out part is cut by the task.
int64_t validation_size(const RunRecord& record) {
  if (record.validation == "test") return record.test_split_examples;
  return record.validation == "own" && record.data_examples ? record.data_examples->val : 0;
}

// The validation of the tested weights, if it was made on the whole test set.
const Evaluation* validation_on_test(const RunRecord& record) {
  if (record.validation != "test") return nullptr;
  for (const Evaluation& e : record.val_curve) {
    if (e.step == record.test->step && e.num_examples == record.test_split_examples) return &e;
  }
  return nullptr;
}

void check_test(const RunRecord& record, Findings& findings) {
  const Evaluation& test = *record.test;
  check_evaluation("test", test, findings);
  if (record.checkpoint == "last") {
    findings.expect_equal("the step of the test", test.step, record.steps);
  } else if (record.checkpoint == "best" && record.best_val) {
    findings.expect_equal("the step of the test", test.step, record.best_val->step);
  } else {
    findings.expect(test.step <= record.steps, "the test is of step " + std::to_string(test.step) +
                                                   "; the run has " + thousands(record.steps));
  }
  const Evaluation* same = validation_on_test(record);
  if (!same)
    return check_count(record, "test", test, "test_examples", record.test_split_examples, findings);
  // The figure of the last weights is copied; the best ones are evaluated once more.
  const double slack = test.step == record.steps ? 0 : 0.01;
  findings.expect(std::abs(same->accuracy - test.accuracy) <= slack,
                  "the test is " + percent(test.accuracy) +
                      "; the validation of the same weights "
                      "on the same examples is " +
                      percent(same->accuracy));
}

}  // namespace

bool is_share(double share, int64_t count) {
  const double right = share * static_cast<double>(count);
  // A double holds a share of as many examples as there are to far better than this.
  constexpr double kRounding = 1e-6;
  return std::abs(right - std::round(right)) <= kRounding * std::max(1.0, right);
}

void check_evaluations(const RunRecord& record, Findings& findings) {
  check_curve(record, findings);
  check_validation_steps(record, findings);
  for (const Evaluation& e : record.val_curve) {
    check_count(record, "validation", e, "eval_examples", validation_size(record), findings);
  }
  if (record.test) check_test(record, findings);
}

}  // namespace lra
