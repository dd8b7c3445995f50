#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "records/test_records.h"
#include "report/formats/html_parts.h"

namespace lra::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunRecord with_curve(RunRecord run, std::vector<double> accuracies) {
  for (size_t i = 0; i < accuracies.size(); ++i) {
    run.val_curve.push_back({static_cast<int64_t>(100 * (i + 1)), 1, accuracies[i], 2000});
  }
  return run;
}

TEST(Curves, PointsWithoutAValueAreLeftOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<RunRecord> records = {
      with_curve(finished_run("text", "transformer", 60), {0.5, nan, 0.6})};
  const std::string page = curves_html(records, build_leaderboard(records));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, HasSubstr("<path class=\"curve c0 d0\""));
}

TEST(Curves, EveryTaskGetsAChartWithATextAlternative) {
  const std::vector<RunRecord> records = {
      with_curve(finished_run("text", "transformer", 60), {0.5, 0.61}),
      with_curve(finished_run("image", "performer", 40), {0.2, 0.4})};
  const std::string page = curves_html(records, build_leaderboard(records));
  EXPECT_THAT(page,
              HasSubstr("for 1 run. The highest is transformer, seed 0, 61.00 % at step 200"));
  EXPECT_THAT(page, HasSubstr("performer, seed 0, 40.00 % at step 200"));
}

TEST(Curves, TheNinthModelIsDashed) {
  std::vector<RunRecord> records;
  for (int i = 0; i < 9; ++i) {
    records.push_back(
        with_curve(finished_run("text", "model" + std::to_string(i), 60.0 - i), {0.5, 0.6}));
  }
  const std::string page = curves_html(records, build_leaderboard(records));
  EXPECT_THAT(page, HasSubstr("curve c7 d0"));
  EXPECT_THAT(page, HasSubstr("curve c0 d1"));
}

TEST(Curves, NoCurveNoChart) {
  const std::vector<RunRecord> records = {finished_run("text", "transformer", 60)};
  EXPECT_EQ(curves_html(records, build_leaderboard(records)), "");
}

TEST(Curves, AFlatCurveOfOnePointIsDrawn) {
  const std::vector<RunRecord> records = {
      with_curve(finished_run("text", "transformer", 60), {0.5})};
  EXPECT_THAT(curves_html(records, build_leaderboard(records)), HasSubstr("dot\" d=\"M"));
}

}  // namespace
}  // namespace lra::report
