#include "report/tables/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "records/test_records.h"

namespace lra::report {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

RunRecord measured_on(const std::string& model, int64_t threads) {
  RunRecord record = finished_run("text", model, 60);
  record.provenance.threads = threads;
  record.measurements = {
      {.mode = "train", .dtype = "fp32", .length = 1024, .batch = 32, .gemm_flops_per_s = 1}};
  return record;
}

TEST(Tables, EveryRowIsAsWideAsItsHeader) {
  std::vector<RunRecord> records = {measured_on("transformer", 2), measured_on("performer", 2)};
  const Leaderboard board = build_leaderboard(records);
  for (const auto make :
       {accuracy_table, protocol_table, training_speed_table, measurement_table}) {
    const Table table = make(board);
    EXPECT_FALSE(table.rows.empty()) << table.title;
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.header.size()) << table.title;
  }
}

TEST(Tables, TheMachineIsAColumnOnlyWhenThereAreSeveral) {
  const Table one = measurement_table(
      build_leaderboard({measured_on("transformer", 2), measured_on("performer", 2)}));
  EXPECT_THAT(one.header, Not(Contains("Machine")));
  EXPECT_THAT(one.caption, HasSubstr("Test processor, 2"));
  const Table two = measurement_table(
      build_leaderboard({measured_on("transformer", 2), measured_on("performer", 4)}));
  EXPECT_THAT(two.header, Contains("Machine"));
}

TEST(Tables, MeasurementsSayPresetAndRevision) {
  std::vector<RunRecord> records = {measured_on("transformer", 2), measured_on("performer", 2)};
  const Table one = measurement_table(build_leaderboard(records));
  EXPECT_THAT(
      one.caption,
      HasSubstr("Preset: paper. mode: train. dtype: fp32. batch: 32. Revision: 0123456789."));
  records[1].preset = "small";
  records[1].provenance.git_dirty = "ab";
  const Table two = measurement_table(build_leaderboard(records));
  EXPECT_THAT(two.header, Contains("Preset"));
  EXPECT_THAT(two.header, Contains("Revision"));
}

TEST(Tables, RowsOfOneModelAreToldApart) {
  std::vector<RunRecord> records = {finished_run("text", "transformer", 60),
                                    finished_run("text", "transformer", 61)};
  records[1].preset = "release";
  records[1].fingerprint += "/release";
  const Leaderboard board = build_leaderboard(records);
  EXPECT_EQ(row_label(board, board.rows[0]), "transformer (release, last)");
  EXPECT_EQ(row_label(board, board.rows[1]), "transformer (paper, last)");
}

RunRecord on_own_data(const std::string& data, const std::string& model, double accuracy) {
  RunRecord run = finished_run("custom:" + data, model, accuracy, 0, 400);
  run.num_parameters = 53'100;
  run.published_setting = false;
  run.baselines = {{"majority", 0.5}};
  return run;
}

TableCell cell_of(const Table& table, size_t row, const std::string& title) {
  const auto found = std::find(table.header.begin(), table.header.end(), title);
  EXPECT_NE(found, table.header.end()) << title;
  return table.rows.at(row).at(static_cast<size_t>(found - table.header.begin()));
}

TEST(Tables, OwnDataHasWhatTheTasksHave) {
  RunRecord cut = on_own_data("a", "local", 90);
  cut.steps = cut.planned_steps = 100;
  const Table table = own_data_table(build_leaderboard(
      {on_own_data("a", "performer", 80), on_own_data("a", "transformer", 52), cut}));
  ASSERT_EQ(table.rows.size(), 3U);
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.header.size());
  EXPECT_EQ(cell_of(table, 0, "Accuracy").text, "80.00");
  EXPECT_EQ(cell_of(table, 0, "Accuracy").emphasis, Emphasis::kBest);
  EXPECT_EQ(cell_of(table, 0, "95 %").text, "±4.20") << "of 400 examples";
  EXPECT_EQ(cell_of(table, 0, "Trivial baseline").text, "50.00 majority");
  EXPECT_EQ(cell_of(table, 0, "Parameters").text, "53.1k");
  EXPECT_EQ(cell_of(table, 0, "Training time").text, "1.7 min");
  EXPECT_EQ(cell_of(table, 1, "Marks").text, "not above trivial: 50.00 of majority");
  EXPECT_EQ(cell_of(table, 1, "Accuracy").emphasis, Emphasis::kSecond);
  EXPECT_EQ(cell_of(table, 2, "Marks").text, "other settings: 100 of 5,000 steps");
  EXPECT_EQ(cell_of(table, 2, "Accuracy").emphasis, Emphasis::kPlain) << "of another budget";
  for (const char* mark : {"§ other settings: ", "‡ not above trivial: "}) {
    EXPECT_THAT(table.caption, HasSubstr(mark));
  }
  EXPECT_THAT(table.header, Not(Contains("Settings"))) << "all have the same";
}

TEST(Tables, OwnDataHasOnlyTheSettingsOfItsOwnRuns) {
  std::vector<RunRecord> records = {on_own_data("a", "performer", 80),
                                    on_own_data("a", "performer", 70),
                                    on_own_data("b", "performer", 60)};
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].fingerprint = std::to_string(i);
    records[i].config.table("train").set("batch_size", ConfigValue{int64_t{i == 1 ? 8 : 32}, ""});
  }
  const Table table = own_data_table(build_leaderboard(records));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(cell_of(table, 0, "Settings").text, "train.batch_size=32");
  EXPECT_EQ(cell_of(table, 1, "Settings").text, "train.batch_size=8");
  EXPECT_EQ(table.rows[2][0].text, "b");
  EXPECT_EQ(cell_of(table, 2, "Settings").text, "-");
}

TEST(Tables, TheBestOfEachTaskIsOneThatBeatsTrivialClassifiers) {
  RunRecord strong = finished_run("text", "s4d", 86), weak = finished_run("text", "local", 65),
            low = finished_run("listops", "local", 36.8), cut = finished_run("image", "local", 40);
  strong.provenance.device = "cuda:0 NVIDIA H100";
  strong.train_seconds = 186;
  cut.steps = 10;
  const std::vector<RunRecord> records = {weak, strong, low, cut};
  const Table table = best_table(build_leaderboard(records));
  ASSERT_EQ(table.rows.size(), 3U);
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.header.size());
  EXPECT_EQ(cell_of(table, 0, "Model").text, "none above trivial; highest: local");
  EXPECT_EQ(cell_of(table, 1, "Model").text, "s4d");
  EXPECT_EQ(cell_of(table, 1, "Trivial").text, "50.00");
  EXPECT_EQ(cell_of(table, 1, "Training time").text, "3.1 min");
  EXPECT_EQ(cell_of(table, 1, "Computed by").text, "NVIDIA H100");
  EXPECT_EQ(cell_of(table, 2, "Model").text, "local");
  EXPECT_EQ(cell_of(table, 2, "Model").emphasis, Emphasis::kQuiet) << "a short run, alone";
  EXPECT_EQ(signs_of(cell_of(table, 2, "Accuracy").marks), "§");
  EXPECT_TRUE(best_table(build_leaderboard({strong})).rows.empty()) << "of one model";
}

TEST(Tables, NumbersReadWell) {
  EXPECT_EQ(size_text(999), "999");
  EXPECT_EQ(size_text(1'250'000), "1.25M");
  EXPECT_EQ(time_text(std::nullopt), "-");
  EXPECT_EQ(time_text(59.4), "59 s");
  EXPECT_EQ(time_text(59.6), "1.0 min");
  EXPECT_EQ(time_text(3000), "50 min");
  EXPECT_EQ(time_text(5400), "1.5 h");
  EXPECT_EQ(time_text(86400 * 2.25), "2.2 days");
  EXPECT_EQ(signed_text(-0.001), "+0.00");
  EXPECT_EQ(signed_text(-0.4), "-0.40");
  EXPECT_EQ(signed_text(std::nullopt), "-");
  EXPECT_EQ(rate_text(0.4567), "0.457");
  EXPECT_EQ(rate_text(12345.6), "12,346");
  EXPECT_EQ(ratio_text(1.25), "1.25x");
}

TEST(Tables, TheBestFigureOfAColumnIsMarkedAndFailIsNot) {
  const Leaderboard board = build_leaderboard(
      {finished_run("pathfinder128", "transformer", 50.9, 0, 20000),
       finished_run("text", "transformer", 60), finished_run("text", "performer", 65)});
  for (const Row& row : board.rows) {
    EXPECT_EQ(rank_in_column(board, row, 0),
              row.model == "performer" ? Emphasis::kBest : Emphasis::kSecond);
    EXPECT_EQ(rank_in_column(board, row, 1), Emphasis::kPlain);
  }
}

}  // namespace
}  // namespace lra::report
