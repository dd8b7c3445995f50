#include "records/check_analysis.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"
#include "records/check_record.h"
#include "records/findings.h"

namespace lra {
namespace {

constexpr double kRoundingOfGap = 1e-9;

std::string as_text(const std::optional<Evaluation>& e) {
  return e ? percent(e->accuracy) + " at step " + std::to_string(e->step) : "none";
}

std::string when(const std::optional<int64_t>& step) {
  return step ? "reached at step " + std::to_string(*step) : "never reached";
}

void check_share(const Evaluation& e, Findings& findings) {
  findings.expect(is_share(e.accuracy, e.num_examples),
                  "an accuracy of " + fixed(e.accuracy, 8) + " is no whole number of " +
                      thousands(e.num_examples) + " examples");
}

// The evaluation of the same weights on as many examples of the split in the run's record; null if
// it has none.
const Evaluation* recorded(const RunRecord& run, const std::string& split, const Evaluation& e) {
  const auto is_same = [&](const Evaluation& other) {
    return other.step == e.step && other.num_examples == e.num_examples;
  };
  if (split == "test") return run.test && is_same(*run.test) ? &*run.test : nullptr;
  const auto found = std::ranges::find_if(run.val_curve, is_same);
  return split == "val" && found != run.val_curve.end() ? &*found : nullptr;
}

// On another processor or device a few examples may fall to the other side.
void check_own_score(const RunRecord& run, const std::string& split, const Evaluation& e,
                     Findings& findings) {
  const Evaluation* own = recorded(run, split, e);
  if (!own) return;
  const double slack = std::max(0.01, 2.0 / static_cast<double>(e.num_examples));
  findings.expect(std::abs(own->accuracy - e.accuracy) <= slack + kRoundingOfGap,
                  "its accuracy on " + split + " is " + percent(e.accuracy) +
                      "; that of the same weights in the run's record " + percent(own->accuracy));
}

void check(const RunRecord& run, const GeneralizationResult& g, Findings& findings) {
  check_share(g.train, findings);
  check_share(g.test, findings);
  check_own_score(run, "test", g.test, findings);
  const double gap = g.train.accuracy - g.test.accuracy;
  findings.expect(std::abs(g.gap - gap) <= kRoundingOfGap,
                  "its gap is " + fixed(g.gap, 8) + "; the accuracies give " + fixed(gap, 8));
}

// The curve may have grown since.
void check(const RunRecord& run, const ConvergenceResult& c, Findings& findings) {
  std::vector<Evaluation> curve = run.val_curve;
  std::erase_if(curve, [&](const Evaluation& e) { return e.step > c.last_step; });
  for (const Threshold& threshold : c.thresholds) {
    const auto first = std::ranges::find_if(
        curve, [&](const Evaluation& e) { return e.accuracy >= threshold.accuracy; });
    const auto step = first == curve.end() ? std::nullopt : std::optional(first->step);
    findings.expect(threshold.step == step, "an accuracy of " + percent(threshold.accuracy) +
                                                " is " + when(threshold.step) +
                                                "; by the run's record " + when(step));
  }
  const auto most = std::ranges::max_element(curve, {}, &Evaluation::accuracy);
  const auto best = most == curve.end() ? std::nullopt : std::optional(*most);
  findings.expect(as_text(c.best) == as_text(best), "its best validation is " + as_text(c.best) +
                                                        "; by the run's record " + as_text(best));
}

// A run may have been trained further since. Its record counts steps after the last checkpoint if
// it is not done.
void check_step(const RunRecord& run, const AnalysisRecord& analysis, Findings& findings) {
  const bool is_of_curve = analysis.convergence.has_value();  // up to its own last step
  if (run.status != RunStatus::kDone || is_of_curve) return;
  const auto expect = [&](int64_t step, const std::string& weights) {
    findings.expect(analysis.step == step, "it is of step " + std::to_string(analysis.step) +
                                               "; the run's " + weights + " weights are those of " +
                                               std::to_string(step) + ": analyze the run again");
  };
  if (analysis.checkpoint == "last") expect(run.steps, "last");
  if (analysis.checkpoint == "best" && run.best_val) expect(run.best_val->step, "best");
}

void check_scores(const std::vector<ChangedInput>& scores, Findings& findings) {
  for (const ChangedInput& one : scores) {
    if (one.score) check_share(*one.score, findings);
  }
}

void check(const RunRecord& run, const std::string& split, const ControlsResult& c,
           Findings& findings) {
  check_scores(c.scores, findings);
  if (const Evaluation* own = own_score(c.scores)) check_own_score(run, split, *own, findings);
  for (const auto& [name, accuracy] : c.baselines) {
    const auto found = run.baselines.find(name);
    findings.expect(found != run.baselines.end() && found->second == accuracy,
                    "the baseline '" + name + "' is not that of the run's record");
  }
}

}  // namespace

std::vector<std::string> check_analysis(const AnalysisRecord& analysis, const RunRecord& run) {
  Findings findings;
  check_step(run, analysis, findings);
  if (analysis.generalization) check(run, *analysis.generalization, findings);
  if (analysis.convergence) check(run, *analysis.convergence, findings);
  if (analysis.controls) check(run, analysis.split, *analysis.controls, findings);
  if (analysis.transfer) check_scores(analysis.transfer->scores, findings);
  return findings.lines();
}

}  // namespace lra
