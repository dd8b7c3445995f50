#include "report/tables/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "records/test_records.h"
#include "report/report.h"

namespace lra::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Comparison comparison(double left, double right, double noise = 0) {
  return {Measured{left, noise}, Measured{right, noise}, "left", "right", "%"};
}

TEST(Claims, AreConfirmedOnlyWhenEveryComparisonHolds) {
  EXPECT_EQ(judge({comparison(60, 50), comparison(70, 50)}).verdict, Verdict::kConfirmed);
  EXPECT_EQ(judge({comparison(60, 50), comparison(40, 50)}).verdict, Verdict::kContradicted);
}

TEST(Claims, WithinTheNoiseNothingIsDecided) {
  EXPECT_EQ(judge({comparison(51, 50, 1)}).verdict, Verdict::kUndecided);
  EXPECT_EQ(judge({comparison(50, 50)}).verdict, Verdict::kUndecided);
  EXPECT_EQ(judge({comparison(52, 50, 1)}).verdict, Verdict::kConfirmed);
  EXPECT_EQ(judge({comparison(48, 50, 1)}).verdict, Verdict::kContradicted);
}

TEST(Claims, AMissingFigureLeavesAClaimUntestedUnlessItIsContradicted) {
  Comparison missing = comparison(60, 50);
  missing.right.reset();
  EXPECT_EQ(judge({}).verdict, Verdict::kNotTested);
  EXPECT_EQ(judge({missing}).verdict, Verdict::kNotTested);
  const Judgement partly = judge({comparison(60, 50), missing});
  EXPECT_EQ(partly.verdict, Verdict::kNotTested);
  EXPECT_THAT(partly.finding, HasSubstr("1 of 2 comparisons"));
  EXPECT_EQ(judge({comparison(40, 50), missing}).verdict, Verdict::kContradicted);
}

TEST(Claims, TheFindingIsTheComparisonThatDecides) {
  EXPECT_EQ(judge({comparison(90, 50), comparison(51, 50)}).finding,
            "left 51.00 % above right 50.00 %");
  EXPECT_EQ(judge({comparison(60, 50, 1), comparison(41, 50, 1)}).finding,
            "left 41.00 ± 1.00 % below right 50.00 ± 1.00 %");
}

TEST(Claims, WhatWasNeverReachedIsLast) {
  const double never = HUGE_VAL;
  EXPECT_EQ(judge({comparison(never, 900)}).verdict, Verdict::kConfirmed);
  EXPECT_EQ(judge({comparison(900, never)}).verdict, Verdict::kContradicted);
  EXPECT_EQ(judge({comparison(never, never)}).verdict, Verdict::kUndecided);
  EXPECT_THAT(judge({comparison(never, 900)}).finding, HasSubstr("left (never reached)"));
}

// Lists the sentences that the paper's own tables do not support.
TEST(Claims, ThePapersOwnTablesContradictTwoOfItsSentences) {
  const auto paper = paper_evidence();
  std::set<std::string> contradicted, undecided;
  for (const Claim& claim : paper_claims()) {
    const Verdict verdict = judge(claim.comparisons(*paper)).verdict;
    if (verdict == Verdict::kContradicted) contradicted.insert(std::string(claim.statement));
    if (verdict == Verdict::kUndecided) undecided.insert(std::string(claim.statement));
  }
  EXPECT_THAT(undecided, IsEmpty());
  EXPECT_THAT(contradicted,
              ::testing::UnorderedElementsAre(HasSubstr("slower than the Transformer at 1K"),
                                              HasSubstr("about the same memory at 3K and 4K")));
}

const JudgedClaim& find(const std::vector<JudgedClaim>& claims, const std::string& part) {
  for (const JudgedClaim& claim : claims) {
    if (claim.claim->statement.find(part) != std::string_view::npos) return claim;
  }
  throw std::out_of_range(part);
}

class JudgedRecords : public ::testing::Test {
 protected:
  std::vector<JudgedClaim> judged() {
    board_ = build_leaderboard(records_);
    grids_ = speed_grids(board_.speeds);
    return judge_claims({records_, board_, own_, grids_, options_});
  }
  void add_pathfinder(const std::string& preset, double lead) {
    for (const PaperModel& model : paper_models()) {
      const double paper = *paper_accuracy(model, PaperTask::kPathfinder, PaperVersion::kV0);
      records_.push_back(finished_run("pathfinder", std::string(model.name),
                                      model.name == "performer" ? paper + lead : paper, 0,
                                      2000000));
      records_.back().preset = preset;
    }
  }
  void add_speeds(const std::string& model, double factor) {
    RunRecord record = finished_run("text", model, 60);
    record.kind = "bench";
    record.fingerprint.clear();
    for (const int64_t length : kPaperLengths) {
      record.measurements.push_back({.mode = "train",
                                     .dtype = "fp32",
                                     .length = length,
                                     .batch = 32,
                                     .steps_per_s = factor,
                                     .tokens_per_s = factor * 32,
                                     .slowest_steps_per_s = factor * 0.99,
                                     .fastest_steps_per_s = factor * 1.01,
                                     .windows = 5,
                                     .peak_resident_bytes = 1000000000});
    }
    records_.push_back(record);
  }

  std::vector<RunRecord> records_;
  Leaderboard board_, own_;
  std::vector<SpeedGrid> grids_;
  ReportOptions options_;
};

TEST_F(JudgedRecords, FullRunsOfThePapersPresetDecide) {
  add_pathfinder("paper", 5);
  const auto claims = judged();
  EXPECT_EQ(find(claims, "Performer is best and Local").ours.verdict, Verdict::kConfirmed);
  EXPECT_EQ(find(claims, "All models learn Pathfinder").ours.verdict, Verdict::kConfirmed);
  EXPECT_EQ(find(claims, "BigBird has the best average").ours.verdict, Verdict::kNotTested);
}

TEST_F(JudgedRecords, AWorsePerformerContradicts) {
  add_pathfinder("release", -10);
  const Judgement ours = find(judged(), "Performer is best and Local").ours;
  EXPECT_EQ(ours.verdict, Verdict::kContradicted);
  EXPECT_THAT(ours.finding, HasSubstr("Performer 67.05"));
}

TEST_F(JudgedRecords, SmallPresetsAndShortenedRunsAreJudgedOnTheirOwnScale) {
  add_pathfinder("small", 5);
  JudgedClaim claim = find(judged(), "Performer is best and Local");
  EXPECT_EQ(claim.ours.verdict, Verdict::kNotTested);
  EXPECT_EQ(scaled_verdict_text(claim), "full scale: not tested; small scale: confirmed");
  records_.clear();
  add_pathfinder("paper", 5);
  EXPECT_EQ(scaled_verdict_text(find(judged(), "Performer is best and Local")), "confirmed");
  for (RunRecord& record : records_) record.steps = 100;
  claim = find(judged(), "Performer is best and Local");
  EXPECT_EQ(claim.ours.verdict, Verdict::kNotTested);
  EXPECT_EQ(claim.small.verdict, Verdict::kConfirmed);
}

TEST_F(JudgedRecords, SpeedsAreJudgedWhereTheTransformerWasMeasuredToo) {
  add_speeds("reformer", 0.5);
  EXPECT_EQ(find(judged(), "Reformer trains more slowly").ours.verdict, Verdict::kNotTested);
  add_speeds("transformer", 1);
  EXPECT_EQ(find(judged(), "Reformer trains more slowly").ours.verdict, Verdict::kConfirmed);
  EXPECT_EQ(find(judged(), "Performer is the fastest").ours.verdict, Verdict::kNotTested);
}

TEST_F(JudgedRecords, SpeedsOfTheSmallPresetDecideNothing) {
  add_speeds("reformer", 0.5);
  add_speeds("transformer", 1);
  for (RunRecord& record : records_) record.preset = "small";
  const JudgedClaim claim = find(judged(), "Reformer trains more slowly");
  EXPECT_EQ(claim.ours.verdict, Verdict::kNotTested);
  EXPECT_THAT(scaled_finding(claim),
              HasSubstr("small scale: Transformer 1.00 ± 0.01 x above Reformer"));
}

TEST_F(JudgedRecords, AnAnalysisCountsOnlyWithItsFullRun) {
  add_pathfinder("paper", 0);
  AnalysisRecord record;
  record.kind = "embeddings";
  record.task = "image";
  record.model = "transformer";
  record.preset = "paper";
  record.fingerprint = "image/transformer/0";
  record.embeddings = EmbeddingsResult{};
  record.embeddings->intensity_correlation = -0.6;
  options_.analyses.push_back({record, {}});
  EXPECT_EQ(find(judged(), "Grays that are nearer").ours.verdict, Verdict::kNotTested);
  records_.push_back(finished_run("image", "transformer", 42));
  EXPECT_EQ(find(judged(), "Grays that are nearer").ours.verdict, Verdict::kConfirmed);
}

}  // namespace
}  // namespace lra::report
