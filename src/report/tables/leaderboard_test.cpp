#include "report/tables/leaderboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "records/test_records.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

const Row& row_of(const Leaderboard& board, const std::string& model) {
  for (const Row& row : board.rows) {
    if (row.model == model) return row;
  }
  throw Error({.where = "test", .what = "no row " + model});
}

std::vector<RunRecord> five_tasks(const std::string& model) {
  return {finished_run("listops", model, 40), finished_run("text", model, 60),
          finished_run("retrieval", model, 80), finished_run("image", model, 50),
          finished_run("pathfinder32", model, 70)};
}

TEST(Leaderboard, MeansAreOverSeeds) {
  const Leaderboard board = build_leaderboard({finished_run("text", "transformer", 64, 0),
                                               finished_run("text", "transformer", 66, 1),
                                               finished_run("text", "transformer", 65, 2)});
  ASSERT_EQ(board.rows.size(), 1u);
  const Cell& cell = board.rows[0].cells[0];
  EXPECT_EQ(cell.accuracy.count, 3);
  EXPECT_NEAR(cell.accuracy.mean, 65, 1e-9);
  EXPECT_NEAR(*cell.accuracy.deviation, 1, 1e-9);
  EXPECT_NEAR(*cell.accuracy.half_width95, 4.303 / std::sqrt(3.0), 1e-3);
}

TEST(Leaderboard, LostRunsAreCountedAndNeverAveraged) {
  const Leaderboard board =
      build_leaderboard({finished_run("text", "performer", 65, 0),
                         lost_run("text", "performer", RunStatus::kDiverged, 1),
                         lost_run("text", "performer", RunStatus::kFailed, 2),
                         lost_run("text", "performer", RunStatus::kStopped, 3)});
  const Cell& cell = board.rows.at(0).cells.at(0);
  EXPECT_EQ(cell.accuracy.count, 1);
  EXPECT_NEAR(cell.accuracy.mean, 65, 1e-9);
  EXPECT_EQ(cell.num_diverged, 1);
  EXPECT_EQ(cell.num_failed, 1);
  EXPECT_EQ(cell.num_unfinished, 1);
  EXPECT_EQ(spread_text(cell), "±2.12, 1 diverged, 1 failed, 1 unfinished");
}

TEST(Leaderboard, AverageOfFiveNeedsAllFiveTasks) {
  std::vector<RunRecord> records = five_tasks("transformer");
  EXPECT_NEAR(*build_leaderboard(records).rows[0].scored.ours, 60, 1e-9);
  records.pop_back();
  const Row row = build_leaderboard(records).rows[0];
  EXPECT_FALSE(row.scored.ours);
  EXPECT_NEAR(*row.present.ours, 57.5, 1e-9);
}

TEST(Leaderboard, AverageOfFiveLeavesPathXOut) {
  std::vector<RunRecord> records = five_tasks("transformer");
  records.push_back(finished_run("pathfinder128", "transformer", 90, 0, 20000));
  const Row row = build_leaderboard(records).rows[0];
  EXPECT_NEAR(*row.scored.ours, 60, 1e-9);
  EXPECT_NEAR(*row.present.ours, 65, 1e-9);
  EXPECT_FALSE(row.present.paper_v1) << "the paper has no Path-X figure";
}

TEST(Leaderboard, AverageOfAllNeedsEveryColumn) {
  std::vector<RunRecord> records = {finished_run("text", "transformer", 64),
                                    finished_run("image", "performer", 42)};
  for (const Row& row : build_leaderboard(records).rows) EXPECT_FALSE(row.present.ours);
}

TEST(Leaderboard, ComparesWithBothPaperVersions) {
  const Leaderboard board = build_leaderboard(five_tasks("performer"));
  const Cell& listops = board.rows[0].cells[0];
  EXPECT_EQ(listops.paper_v0, 18.01);
  EXPECT_EQ(listops.paper_v1, 36.00);
  EXPECT_NEAR(*difference(listops.accuracy.mean, listops.paper_v1), 4, 1e-9);
  EXPECT_NEAR(*board.rows[0].scored.paper_v0, 51.41, 1e-9);
}

TEST(Leaderboard, UnknownModelsHaveNoPaperFigure) {
  const Leaderboard board = build_leaderboard(five_tasks("s4d"));
  EXPECT_FALSE(board.rows[0].cells[0].paper_v0);
  EXPECT_FALSE(board.rows[0].scored.paper_v1);
}

TEST(Leaderboard, PathXAtChanceAfterTheFullBudgetIsFail) {
  const Leaderboard board =
      build_leaderboard({finished_run("pathfinder128", "transformer", 51.0, 0, 20000)});
  EXPECT_TRUE(board.rows[0].cells[0].fail);
  EXPECT_EQ(figure_text(board.rows[0].cells[0]), "FAIL (51.00)");
}

TEST(Leaderboard, PathXAboveChanceIsAFigure) {
  const Leaderboard board =
      build_leaderboard({finished_run("pathfinder128", "transformer", 51.1, 0, 20000)});
  EXPECT_FALSE(board.rows[0].cells[0].fail);
}

TEST(Leaderboard, OneRunThatLearnedPathXIsNoFail) {
  const Leaderboard board =
      build_leaderboard({finished_run("pathfinder128", "transformer", 50, 0, 20000),
                         finished_run("pathfinder128", "transformer", 80, 1, 20000)});
  EXPECT_FALSE(board.rows[0].cells[0].fail);
}

TEST(Leaderboard, PathXBelowTheFullBudgetIsNoFail) {
  RunRecord run = finished_run("pathfinder128", "transformer", 50, 0, 20000);
  run.steps = run.planned_steps - 1;
  EXPECT_FALSE(build_leaderboard({run}).rows[0].cells[0].fail);
}

TEST(Leaderboard, PathXAfterABudgetOfOnesOwnIsNoFail) {
  RunRecord run = finished_run("pathfinder128", "transformer", 50, 0, 20000);
  run.steps = run.planned_steps = 10;
  EXPECT_FALSE(build_leaderboard({run}).rows[0].cells[0].fail);
  run = finished_run("pathfinder128", "transformer", 50, 0, 20000);
  run.preset_steps = 0;
  EXPECT_FALSE(build_leaderboard({run}).rows[0].cells[0].fail) << "the full budget is not known";
}

TEST(Leaderboard, AShortRunIsMarkedAndEntersNoComparison) {
  std::vector<RunRecord> records = five_tasks("transformer");
  records[1].steps = records[1].planned_steps = 100;
  const Leaderboard board = build_leaderboard(records);
  const Row& row = board.rows[0];
  EXPECT_EQ(row.cells[1].shortfall, "100 of 5,000 steps");
  EXPECT_EQ(marks_text(board, row), "§ 100 of 5,000 steps (Text)");
  EXPECT_EQ(row.cells[1].compared_accuracy(), std::nullopt);
  EXPECT_FALSE(row.scored.ours);
  EXPECT_FALSE(row.present.ours);
  EXPECT_EQ(rank_in_column(board, row, 1), Emphasis::kPlain) << "it is compared with none";
}

std::vector<Emphasis> ranks_of(const Leaderboard& board) {
  std::vector<Emphasis> ranks;
  for (const Row& row : board.rows) ranks.push_back(rank_in_column(board, row, 0));
  return ranks;
}

TEST(Leaderboard, RunsOfEqualSettingsAndStepsAreRankedAmongThemselves) {
  std::vector<RunRecord> records = {finished_run("text", "a", 60), finished_run("text", "b", 62),
                                    finished_run("text", "c", 61), finished_run("text", "d", 99)};
  for (RunRecord& run : records) run.steps = run.planned_steps = 300;
  records[2].preset_steps = 900;  // another model's preset may have another number of steps
  records[3].steps = 200;
  const Leaderboard board = build_leaderboard(records);
  std::string order;
  for (const Row& row : board.rows) order += row.model;
  EXPECT_EQ(order, "bcad") << "those of one budget are neighbors";
  EXPECT_THAT(ranks_of(board), testing::ElementsAre(Emphasis::kBest, Emphasis::kSecond,
                                                    Emphasis::kPlain, Emphasis::kPlain));
  for (RunRecord& run : records) run.preset_steps = 100;  // full runs, of any length
  EXPECT_THAT(
      ranks_of(build_leaderboard(records)),
      testing::ElementsAre(Emphasis::kBest, Emphasis::kSecond, Emphasis::kPlain, Emphasis::kPlain));
  records[3].preset = "small";
  records[2].data_hash = "other";
  EXPECT_THAT(ranks_of(build_leaderboard(records)), Contains(Emphasis::kPlain).Times(2))
      << "other settings or data do not compare";
}

TEST(Leaderboard, AMarkTakesNoRankAway) {
  std::vector<RunRecord> records = {finished_run("custom:a", "a", 98),
                                    finished_run("custom:a", "b", 99)};
  for (RunRecord& run : records) {
    run.baselines = {{"nearest class mean", 0.99}};
    run.data_checks = {{{.check = "copies", .split = "test", .text = "9 copies"}}};
  }
  const Leaderboard board = build_leaderboard(records);
  EXPECT_EQ(board.rows[0].model, "b");
  EXPECT_EQ(signs_of(board.rows[0].cells[0].marks), "†‡");
  EXPECT_THAT(ranks_of(board), testing::ElementsAre(Emphasis::kBest, Emphasis::kSecond));
}

TEST(Leaderboard, AChangedTaskIsNotThePapers) {
  RunRecord run = finished_run("listops", "transformer", 90);
  run.published_setting = false;
  run.division_reason = "task.length 32 instead of 2000";
  ConfigTable& task = run.config.table("task");
  for (const auto& [key, value] : {std::pair{"length", 32}, {"max_depth", 3}, {"max_args", 3}}) {
    task.set(key, ConfigValue{int64_t{value}, ""});
  }
  run.data_examples = {.train = 60000, .val = 2000, .test = 2000};
  const Leaderboard board = build_leaderboard({run});
  const Cell& cell = board.rows[0].cells[0];
  EXPECT_FALSE(cell.paper_v0);
  EXPECT_EQ(cell.compared_accuracy(), std::nullopt);
  EXPECT_THAT(marks_legend(board),
              HasSubstr("ListOps with changed settings (in parentheses the paper's): length 32 "
                        "(2,000), max_depth 3 (10), max_args 3 (10), 60,000 training examples "
                        "(96,000)."));
  EXPECT_EQ(marks_text(board, board.rows[0]), "§ a changed task");
  for (const auto& cells : accuracy_table(board).rows) {
    EXPECT_THAT(cells[0].text, Not(HasSubstr("paper")));
  }
  run.config.table("task").set("length", ConfigValue{int64_t{2000}, ""});
  EXPECT_THAT(marks_legend(build_leaderboard({run})), Not(HasSubstr("length")));
}

TEST(Leaderboard, TheSmallPresetIsAveragedButNotSetAgainstThePaper) {
  RunRecord run = finished_run("listops", "transformer", 37);
  run.preset = "small";
  run.published_setting = false;
  const Leaderboard board = build_leaderboard({run});
  const Cell& cell = board.rows.at(0).cells.at(0);
  EXPECT_NEAR(*cell.full_accuracy(), 37, 1e-9);
  EXPECT_EQ(cell.compared_accuracy(), std::nullopt);
  EXPECT_TRUE(board.rows[0].present.ours);
  EXPECT_EQ(board.rows[0].present.compared, std::nullopt);
  EXPECT_TRUE(
      build_leaderboard({finished_run("listops", "transformer", 37)}).rows.at(0).present.compared);
}

TEST(Leaderboard, OtherSettingsThanPublishedOnesAreNotSetAgainstThePaper) {
  RunRecord run = finished_run("listops", "transformer", 37);
  run.published_setting = false;
  Leaderboard board = build_leaderboard({run});
  EXPECT_NEAR(*board.rows.at(0).cells.at(0).full_accuracy(), 37, 1e-9);
  EXPECT_EQ(board.rows[0].cells[0].compared_accuracy(), std::nullopt);
  run.published_setting = true;  // a model of the paper with more parameters than the rule allows
  run.division = "free-for-all";
  EXPECT_TRUE(build_leaderboard({run}).rows.at(0).cells.at(0).compared_accuracy());
}

TEST(Leaderboard, AColumnOverDifferentDataIsNamed) {
  RunRecord a = finished_run("listops", "transformer", 37),
            b = finished_run("listops", "local", 38);
  const auto different = HasSubstr("ListOps: the figures of this column are of 2 different sets");
  a.data_hash = b.data_hash = "00";
  EXPECT_THAT(build_leaderboard({a, b}).warnings, Not(Contains(different)));
  b.data_hash = "01";
  EXPECT_THAT(build_leaderboard({a, b}).warnings, Contains(different));
}

TEST(Leaderboard, SeedsOfDifferentLengthsAreAllNamed) {
  RunRecord a = finished_run("listops", "transformer", 37), b = a;
  a.steps = 100;
  b.steps = 90;
  b.seed = 1;
  b.fingerprint += "b";
  EXPECT_EQ(build_leaderboard({a, b}).rows.at(0).cells.at(0).shortfall,
            "100 of 5,000 steps; 90 of 5,000 steps");
}

TEST(Leaderboard, APartOfTheTestSetIsMarkedAndEntersNoComparison) {
  std::vector<RunRecord> records = five_tasks("transformer");
  records[1].test_split_examples = 25000;
  const Leaderboard board = build_leaderboard(records);
  EXPECT_EQ(board.rows[0].cells[1].shortfall, "2,000 of 25,000 test examples");
  EXPECT_FALSE(board.rows[0].scored.ours);
}

TEST(Leaderboard, AFigureOnSuspectDataIsMarkedAndEntersNoComparison) {
  std::vector<RunRecord> records = five_tasks("transformer");
  const CheckFinding copies = {
      .check = "copies", .level = CheckLevel::kWarning, .split = "test", .text = "9 are of train"};
  records[1].data_checks = {copies};
  records[2].data_checks = {copies};
  records[2].data_checks->front().accepted = true;
  records[3].data_checks = {copies};
  records[3].data_checks->front().level = CheckLevel::kNote;
  records[4].warnings = {"data in doubt: an earlier program said so in words"};
  const Leaderboard board = build_leaderboard(records);
  const Row& row = board.rows[0];
  EXPECT_EQ(marks_text(board, row), "† copies (test): 9 are of train (Text)");
  EXPECT_EQ(row.cells[1].compared_accuracy(), std::nullopt);
  EXPECT_FALSE(row.scored.ours);
  for (const size_t other : {2, 3, 4}) EXPECT_TRUE(row.cells[other].compared_accuracy()) << other;
}

TEST(Leaderboard, MoreStepsThanThePresetAreAFullRun) {
  RunRecord run = finished_run("text", "transformer", 60);
  run.steps = run.planned_steps = 10000;
  EXPECT_EQ(build_leaderboard({run}).rows[0].cells[0].shortfall, "");
}

TEST(Leaderboard, BaselinesOfOtherTaskSettingsAreNotAveraged) {
  std::vector<RunRecord> records = {finished_run("text", "transformer", 60, 0),
                                    finished_run("text", "transformer", 60, 1),
                                    finished_run("text", "local", 60)};
  const std::vector<std::pair<int64_t, double>> runs = {{1000, 0.6}, {1000, 0.62}, {4000, 0.7}};
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].config.table("task").set("length", ConfigValue{runs[i].first, ""});
    records[i].baselines = {{"byte unigrams", runs[i].second}};
  }
  const Leaderboard board = build_leaderboard(records);
  ASSERT_EQ(board.baselines.size(), 3u);
  EXPECT_EQ(board.baselines[0].name, "byte unigrams (text: length=1000)");
  EXPECT_NEAR(*board.baselines[0].accuracy[0], 61, 1e-9);
  EXPECT_EQ(board.baselines[1].name, "byte unigrams (text: length=4000)");
  EXPECT_NEAR(*board.baselines[1].accuracy[0], 70, 1e-9);
}

TEST(Leaderboard, BaselinesOfOtherDataAreNotAveraged) {
  std::vector<RunRecord> records = {finished_run("text", "transformer", 60),
                                    finished_run("text", "local", 60)};
  for (const size_t i : {0, 1}) {
    records[i].data_hash = i == 0 ? "0011223344" : "ff11223344";
    records[i].baselines = {{"majority", i == 0 ? 0.9 : 0.5}};
  }
  const Leaderboard board = build_leaderboard(records);
  ASSERT_EQ(board.baselines.size(), 3u);
  EXPECT_EQ(board.baselines[0].name, "majority (text: data=00112233)");
  EXPECT_NEAR(*board.baselines[0].accuracy[0], 90, 1e-9);
  EXPECT_NEAR(*board.baselines[1].accuracy[0], 50, 1e-9);
}

TEST(Leaderboard, FailIsForPathXOnly) {
  EXPECT_FALSE(build_leaderboard({finished_run("text", "local", 50)}).rows[0].cells[0].fail);
}

TEST(Leaderboard, NotRunIsNeitherFailNorNought) {
  const Leaderboard board =
      build_leaderboard({finished_run("pathfinder128", "transformer", 50, 0, 20000),
                         finished_run("text", "performer", 65)});
  const Cell& cell = row_of(board, "performer").cells[1];
  EXPECT_EQ(board.columns[1].title, "Path-X");
  EXPECT_FALSE(cell.was_run());
  EXPECT_EQ(figure_text(cell), "not run");
}

TEST(Leaderboard, RefusesTwoVersionsOfOneTask) {
  std::vector<RunRecord> records = {finished_run("text", "transformer", 64),
                                    finished_run("text", "performer", 65)};
  records[1].task_version = 2;
  try {
    build_leaderboard(records);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'text'"));
    EXPECT_THAT(error.what(), HasSubstr("version 2 (performer on text"));
  }
}

TEST(Leaderboard, ListopsFiguresAreComparedWithTheRootOperator) {
  const Leaderboard board = build_leaderboard({finished_run("listops", "transformer", 36.4),
                                               finished_run("listops", "s4d", 58.0),
                                               finished_run("listops", "local", 38, 0, 200000)});
  EXPECT_EQ(marks_text(board, row_of(board, "transformer")), "‡ 36.50 of root operator");
  EXPECT_EQ(marks_text(board, row_of(board, "s4d")), "");
  EXPECT_EQ(marks_text(board, row_of(board, "local")), "") << "a large test set tells them apart";
}

TEST(Leaderboard, AFigureIsComparedWithTheBaselinesOfItsOwnData) {
  RunRecord a = finished_run("text", "a", 80), b = finished_run("text", "b", 80);
  a.baselines = {{"majority", 0.5}};
  b.baselines = {{"byte unigrams", 0.9}};
  b.data_hash = "easier";
  const Leaderboard board = build_leaderboard({a, b});
  EXPECT_EQ(marks_text(board, row_of(board, "a")), "");
  EXPECT_EQ(marks_text(board, row_of(board, "b")), "‡ 90.00 of byte unigrams");
}

TEST(Leaderboard, BaselinesComeFromTheRecordsAndTheGaps) {
  std::vector<RunRecord> records = five_tasks("transformer");
  records[1].baselines = {{"majority", 0.5}, {"byte counts", 0.6}};
  const Leaderboard board = build_leaderboard(records);
  ASSERT_EQ(board.baselines.size(), 4u);
  EXPECT_EQ(board.baselines[0].name, "byte counts");
  EXPECT_EQ(board.baselines[0].accuracy[0], std::nullopt);
  EXPECT_NEAR(*board.baselines[0].accuracy[1], 60, 1e-9);
  EXPECT_EQ(board.baselines[1].name, "majority");
  EXPECT_EQ(board.baselines[1].accuracy[0], 17.3);
  EXPECT_EQ(board.baselines[2].name, "root operator");
  EXPECT_EQ(board.baselines[2].accuracy[0], 36.5);
  EXPECT_EQ(board.baselines[3].name, "chance");
  EXPECT_NEAR(*board.baselines[3].scored, 34, 1e-9);
}

TEST(Leaderboard, BestAverageComesFirst) {
  std::vector<RunRecord> records = five_tasks("transformer");
  for (RunRecord run : five_tasks("a")) {
    run.test->accuracy -= 0.01;
    records.push_back(run);
  }
  const Leaderboard board = build_leaderboard(records);
  EXPECT_EQ(board.rows[0].model, "transformer");
}

TEST(Leaderboard, WithoutAveragesModelsThatBeatTrivialClassifiersComeFirst) {
  const Leaderboard board =
      build_leaderboard({finished_run("listops", "a", 10), finished_run("text", "a", 50),
                         finished_run("text", "b", 90), finished_run("image", "c", 5)});
  EXPECT_EQ(board.rows[0].model, "b");
}

TEST(Leaderboard, WithoutAveragesPointsAboveTheTrivialBaselinesDecide) {
  // Chance is 50 on Text and 10 on Image: 15 points, 5 + 20, and 0 + 30.
  const Leaderboard board = build_leaderboard(
      {finished_run("text", "a", 65), finished_run("text", "b", 55), finished_run("image", "b", 30),
       finished_run("text", "c", 40), finished_run("image", "c", 40)});
  EXPECT_EQ(board.rows[0].model, "b") << "its tasks have an average";
  const Leaderboard other =
      build_leaderboard({finished_run("text", "a", 65), finished_run("image", "b", 30),
                         finished_run("listops", "c", 90)});
  EXPECT_EQ(other.rows[0].model, "c");
  EXPECT_EQ(other.rows[1].model, "b");
  EXPECT_EQ(other.rows[2].model, "a");
}

TEST(Leaderboard, SaysWhenWeightsWereChosenOnTheTestSet) {
  RunRecord run = finished_run("text", "transformer", 64);
  run.validation = "test";
  run.checkpoint = "best";
  EXPECT_THAT(build_leaderboard({run}).warnings, Contains(HasSubstr("chosen on the test set")));
}

TEST(Leaderboard, NamesProtocolAndProvenance) {
  std::vector<RunRecord> records = five_tasks("transformer");
  records[1].validation = "test";
  records[2].provenance.git_dirty = "ab";
  const Leaderboard board = build_leaderboard(records);
  EXPECT_EQ(board.rows[0].validation, "own; text: test");
  EXPECT_EQ(board.rows[0].division, "apples-to-apples");
  EXPECT_EQ(board.rows[0].revisions, "0123456789; 0123456789+changes");
  EXPECT_EQ(board.rows[0].machines, "Test processor, 2 threads, cpu, avx512");
  EXPECT_THAT(board.warnings, Contains(HasSubstr("several revisions")));
}

TEST(Leaderboard, LostRunsAreExplained) {
  RunRecord run = lost_run("text", "performer", RunStatus::kDiverged, 3);
  run.failure = "loss is NaN";
  EXPECT_THAT(build_leaderboard({run}).warnings,
              Contains("performer on text, seed 3: diverged at step 120: loss is NaN"));
}

}  // namespace
}  // namespace lra::report
