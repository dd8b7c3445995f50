#include "report/tables/breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_format.h"
#include "records/test_records.h"
#include "report/report.h"

namespace lra::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Analysis breakdown_of(const std::string& model, uint64_t seed) {
  Analysis analysis;
  static_cast<RunIdentity&>(analysis.record) = finished_run("listops", model, 50, seed);
  analysis.record.kind = "breakdown";
  analysis.record.split = "test";
  BreakdownResult& b = analysis.record.breakdown.emplace();
  b.score = {.step = 1, .accuracy = 0.5, .num_examples = 8};
  b.classes = {{"no", 4, 5, 3}, {"yes", 4, 3, 2}};
  b.macro_f1 = 0.6190;
  b.auc = 0.75;
  b.factors = {{"depth", {{"1", 4, 4}, {"2", 4, 1}}}};
  b.set_correct(std::vector<bool>(8, true));
  return analysis;
}

TEST(Breakdown, ModelsOfOneSetOfExamplesShareAGrid) {
  const std::vector<Analysis> analyses = {breakdown_of("a", 0), breakdown_of("a", 1),
                                          breakdown_of("b", 0)};
  const auto grids = breakdown_grids(analyses);
  ASSERT_EQ(grids.size(), 2u);
  EXPECT_EQ(grids[0].title, "ListOps, test: accuracy by class");
  EXPECT_EQ(grids[1].title, "ListOps, test: accuracy by depth");
  EXPECT_THAT(grids[1].groups, ElementsAre("1", "2"));
  EXPECT_FALSE(grids[0].is_ordered);
  EXPECT_TRUE(grids[1].is_ordered);
  ASSERT_EQ(grids[1].runs.size(), 3u);
  EXPECT_EQ(grids[1].runs[1].label, "a, seed 1");
  EXPECT_EQ(grids[1].runs[1].model, "a");
  EXPECT_EQ(grids[1].runs[2].label, "b");
  const Table table = breakdown_table(grids[1]);
  EXPECT_EQ(table.rows[0][2].text, "25.0 ± " + fixed(binomial_half_width95(25, 4), 1));
}

TEST(Breakdown, RecallAndPrecisionAreOfTheirOwnWhole) {
  const Table table = class_table({breakdown_of("a", 0)});
  EXPECT_EQ(table.rows[0][3].text, "0.6190");
  EXPECT_EQ(table.rows[0][4].text, "0.7500");
  EXPECT_EQ(table.rows[0][5].text, "no: 75.0 / 60.0; yes: 50.0 / 66.7");
}

TEST(Breakdown, ThePageHasAPanelForEachModel) {
  const std::string page = render({finished_run("listops", "a", 50)}, Format::kHtml,
                                  {.analyses = {breakdown_of("a", 0), breakdown_of("b", 0)}});
  EXPECT_THAT(page, HasSubstr("<title>a, 2: 25.0 ± "));
  EXPECT_THAT(page, HasSubstr("Where models fail"));
}

}  // namespace
}  // namespace lra::report
