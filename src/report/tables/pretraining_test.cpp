// The places in a report of runs that predict masked inputs, and of those that begin with their
// weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/test_records.h"
#include "report/report.h"
#include "report/tables/leaderboard.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RunRecord masked_run(const std::string& task, const std::string& model) {
  RunRecord run = finished_run(task, model, 98.76);
  run.division = "pretraining";
  run.published_setting = false;
  run.config.table("train").set("objective", ConfigValue{std::string("masked"), ""});
  run.test->num_positions = 60000;
  run.val = run.test;
  run.fingerprint += "/masked";
  return run;
}

RunRecord self_pretrained(const std::string& model, double percent, uint64_t seed,
                          int64_t pretraining_seed) {
  RunRecord run = finished_run("text", model, percent, seed);
  run.division = "self-pretrained";
  run.published_setting = false;
  run.fingerprint += "/fine-tuned";
  run.config.table("run").set("initial_weights",
                              ConfigValue{"of seed " + std::to_string(pretraining_seed), ""});
  Pretraining before{.steps = 2000};
  before.config.table("run").set("seed", ConfigValue{pretraining_seed, ""});
  before.config.table("train").set("objective", ConfigValue{std::string("masked"), ""});
  run.initial_weights = InitialWeights{.pretraining = before};
  return run;
}

TEST(PretrainingRuns, HaveAListAndNoPlaceAmongResults) {
  const std::vector<RunRecord> records = {masked_run("text", "local"),
                                          finished_run("text", "transformer", 65)};
  const std::string text = render(records, Format::kText);
  EXPECT_THAT(text, HasSubstr("Masked pretraining"));
  EXPECT_THAT(text, HasSubstr("60,000"));
  EXPECT_EQ(text.find("98.76"), text.rfind("98.76")) << "it stands in its list alone";
  for (const Format format : {Format::kCsv, Format::kSummary, Format::kLatex}) {
    EXPECT_THAT(render(records, format), Not(HasSubstr("98.76")));
  }
  EXPECT_THAT(render(records, Format::kHtml), HasSubstr("id=\"pretraining\""));
  EXPECT_THAT(render({records[0]}, Format::kText), HasSubstr("98.76"));
}

TEST(PretrainingRuns, HaveNoCurveAmongThoseOfAccuracy) {
  std::vector<RunRecord> records = {masked_run("text", "local"),
                                    finished_run("text", "transformer", 65)};
  records[0].val_curve = {{100, 1, 0.5, 10}, {200, 1, 0.9, 10}};
  EXPECT_THAT(render(records, Format::kHtml), Not(HasSubstr("<section id=\"curves\">")));
  records[1].val_curve = records[0].val_curve;
  EXPECT_THAT(render(records, Format::kHtml), HasSubstr("against training step for 1 run."));
}

TEST(SelfPretrainedRuns, HaveRowsAndRanksOfTheirOwn) {
  const Leaderboard board = build_leaderboard(
      {finished_run("text", "transformer", 65), finished_run("text", "local", 60),
       self_pretrained("transformer", 88, 0, 0), self_pretrained("transformer", 90, 1, 1)});
  ASSERT_EQ(board.rows.size(), 3u);
  const Row& first = board.rows[0];
  EXPECT_EQ(first.title, "transformer, self-pretrained");
  EXPECT_EQ(first.division, "self-pretrained");
  EXPECT_EQ(first.cells[0].accuracy.count, 2) << "seeds of the pretraining share a row";
  EXPECT_EQ(first.settings, "");
  std::vector<Emphasis> ranks;
  for (const Row& row : board.rows) ranks.push_back(rank_in_column(board, row, 0));
  EXPECT_THAT(ranks, ElementsAre(Emphasis::kPlain, Emphasis::kBest, Emphasis::kSecond))
      << "one alone is compared with none";
}

TEST(SelfPretrainedRuns, OfAnotherPretrainingHaveAnotherRow) {
  RunRecord longer = self_pretrained("transformer", 90, 1, 1);
  longer.initial_weights->pretraining->steps = 4000;
  const Leaderboard board = build_leaderboard({self_pretrained("transformer", 88, 0, 0), longer});
  ASSERT_EQ(board.rows.size(), 2u);
  EXPECT_THAT(board.rows[0].settings + board.rows[1].settings, HasSubstr("pretraining=4000 steps"));
}

}  // namespace
}  // namespace lra::report
