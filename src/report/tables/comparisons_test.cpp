#include "report/tables/comparisons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "records/test_records.h"
#include "report/report.h"

namespace lra::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The examples that a run predicted right, as the program keeps them next to it.
Analysis kept(const RunRecord& run, const std::vector<bool>& correct) {
  Analysis analysis;
  static_cast<RunIdentity&>(analysis.record) = run;
  analysis.record.kind = "breakdown";
  analysis.record.split = "test";
  analysis.record.step = run.steps;
  analysis.record.num_examples = static_cast<int64_t>(correct.size());
  analysis.record.breakdown.emplace();
  analysis.record.breakdown->score = *run.test;
  analysis.record.breakdown->set_correct(correct);
  return analysis;
}

std::vector<bool> first_of(size_t right, size_t all) {
  std::vector<bool> correct(all, false);
  std::fill(correct.begin(), correct.begin() + static_cast<std::ptrdiff_t>(right), true);
  return correct;
}

std::vector<RunRecord> seeds(const std::string& model, const std::vector<double>& percents) {
  std::vector<RunRecord> runs;
  for (const double percent : percents) {
    runs.push_back(finished_run("text", model, percent, runs.size()));
  }
  return runs;
}

std::string text_of(std::vector<RunRecord> runs, const std::vector<RunRecord>& more,
                    const ReportOptions& options = {}) {
  runs.insert(runs.end(), more.begin(), more.end());
  return render(runs, Format::kMarkdown, options);
}

// scipy.stats.ttest_rel([60, 61, 62.5, 61.5], [58, 60.5, 60, 61]): p = 0.0758; the interval of the
// mean difference 1.375 is 1.64 wide to each side.
TEST(Comparisons, SeedsArePaired) {
  const std::string text =
      text_of(seeds("a", {60, 61, 62.5, 61.5}), seeds("b", {58, 60.5, 60, 61}));
  EXPECT_THAT(text, HasSubstr("| Text | a | b | \\+1.38 ± 1.64 | paired t, 4 seeds | 0.076 | "
                              "0.076 | no difference shown |"));
}

TEST(Comparisons, BetterIsSaidOnlyWhenItIs) {
  EXPECT_THAT(text_of(seeds("a", {70, 71, 72}), seeds("b", {60, 61.1, 61.9})),
              HasSubstr("| better |"));
  const std::string one_seed = text_of(seeds("a", {70}), seeds("b", {60}));
  EXPECT_THAT(one_seed, Not(HasSubstr("## Comparisons"))) << "nothing was tested";
  const std::string equal = text_of(seeds("a", {70, 71, 72}), seeds("b", {60, 61, 62}));
  EXPECT_THAT(equal, Not(HasSubstr("better"))) << "differences without a spread";
}

TEST(Comparisons, ExamplesOfOneSeedAreTestedByMcNemar) {
  const std::vector<RunRecord> a = {finished_run("text", "a", 60, 0, 20)},
                               b = {finished_run("text", "b", 15, 0, 20)};
  ReportOptions options{.analyses = {kept(a[0], first_of(12, 20)), kept(b[0], first_of(3, 20))}};
  EXPECT_THAT(
      text_of(a, b, options),
      HasSubstr(
          "| Text | a | b | \\+45.00 | McNemar, 9 : 0 | 0.004 | 0.004 | better (these runs) |"));
  options.analyses[1].record.step = 1;  // of other weights than those that were tested
  EXPECT_THAT(text_of(a, b, options), Not(HasSubstr("McNemar,")));
}

TEST(Comparisons, ManyTestsAreCorrected) {
  std::vector<RunRecord> runs = {finished_run("text", "a", 60, 0, 20)};
  ReportOptions options{.analyses = {kept(runs[0], first_of(12, 20))}};
  for (const char* model : {"b", "c", "d"}) {  // each p = 2 / 2^7 = 0.0156
    runs.push_back(finished_run("text", model, 25, 0, 20));
    options.analyses.push_back(kept(runs.back(), first_of(5, 20)));
  }
  // Corrected for six pairs, as the best was chosen from the same results.
  EXPECT_THAT(text_of(runs, {}, options), HasSubstr("| 0.016 | 0.094 | no difference shown |"));
  options.compare = "a";
  EXPECT_THAT(text_of(runs, {}, options), HasSubstr("| 0.016 | 0.047 | better (these runs) |"));
  options.compare = "d";
  const std::string of_d = text_of(runs, {}, options);
  EXPECT_THAT(
      of_d,
      HasSubstr("| Text | d | a | -35.00 | McNemar, 0 : 7 | 0.016 | 0.047 | worse (these runs) |"));
  EXPECT_THAT(of_d, HasSubstr("| Text | d | b | \\+0.00 |"));
  options.compare = "nobody";
  EXPECT_THROW(text_of(runs, {}, options), Error);
}

TEST(Comparisons, TwoBestModelsAreComparedOnce) {
  const std::vector<RunRecord> runs = {finished_run("text", "a", 50, 0, 20),
                                       finished_run("text", "b", 50, 0, 20)};
  const std::string text = text_of(
      runs, {}, {.analyses = {kept(runs[0], first_of(10, 20)), kept(runs[1], first_of(10, 20))}});
  EXPECT_THAT(text, HasSubstr("| Text | a | b |"));
  EXPECT_THAT(text, Not(HasSubstr("| Text | b | a |")));
}

// The runs of the first common seed are tested; the mean over both seeds has the other sign.
TEST(Comparisons, TheVerdictIsOfTheRunsThatWereTested) {
  std::vector<RunRecord> a = {finished_run("text", "a", 15, 0, 20),
                              finished_run("text", "a", 95, 1, 20)},
                         b = {finished_run("text", "b", 60, 0, 20),
                              finished_run("text", "b", 35, 1, 20)};
  ReportOptions options{.analyses = {kept(a[0], first_of(3, 20)), kept(b[0], first_of(12, 20))}};
  options.compare = "a";
  EXPECT_THAT(
      text_of(a, b, options),
      HasSubstr("| Text | a | b | -45.00 | McNemar, 0 : 9 | 0.004 | 0.004 | worse (these runs) |"));
}

}  // namespace
}  // namespace lra::report
