#include "report/tables/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "records/test_records.h"
#include "report/tables/leaderboard.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

RunRecord timed_run(const std::string& model, double tokens_per_s) {
  RunRecord run = finished_run("text", model, 60);
  run.train_tokens_per_s = tokens_per_s;
  return run;
}

const CellSpeed& speed_of(const Leaderboard& board, const std::string& model) {
  for (const Row& row : board.rows) {
    if (row.model == model) return row.cells[0].speed;
  }
  return board.rows.at(board.rows.size()).cells[0].speed;
}

TEST(Speed, TrainingSpeedIsRelativeToTheTransformer) {
  const Leaderboard board =
      build_leaderboard({timed_run("transformer", 10000), timed_run("performer", 25000)});
  EXPECT_DOUBLE_EQ(*speed_of(board, "performer").relative, 2.5);
  EXPECT_DOUBLE_EQ(*speed_of(board, "performer").tokens_per_s, 25000);
  EXPECT_DOUBLE_EQ(*speed_of(board, "performer").steps_per_s, 50);
  EXPECT_EQ(speed_of(board, "performer").peak_memory_bytes, 1500000000);
}

TEST(Speed, AnotherMachineIsNoYardstick) {
  std::vector<RunRecord> records = {timed_run("transformer", 10000), timed_run("performer", 25000)};
  records[1].provenance.threads = 8;
  EXPECT_FALSE(speed_of(build_leaderboard(records), "performer").relative);
}

TEST(Speed, AnotherRevisionIsNoYardstick) {
  std::vector<RunRecord> records = {timed_run("transformer", 10000), timed_run("performer", 25000)};
  records[1].provenance.git_dirty = "ab";
  EXPECT_FALSE(speed_of(build_leaderboard(records), "performer").relative);
}

TEST(Speed, OtherWorkIsNoYardstick) {
  struct Change {
    const char *section, *key;
  };
  for (const Change& change :
       {Change{"task", "length"}, Change{"model", "embed_dim"}, Change{"train", "batch_size"}}) {
    std::vector<RunRecord> records = {timed_run("transformer", 10000),
                                      timed_run("performer", 25000)};
    for (RunRecord& run : records) {
      run.config.table(change.section).set(change.key, ConfigValue{int64_t{32}, ""});
    }
    EXPECT_TRUE(speed_of(build_leaderboard(records), "performer").relative);
    records[0].config.table(change.section).set(change.key, ConfigValue{int64_t{64}, ""});
    EXPECT_FALSE(speed_of(build_leaderboard(records), "performer").relative) << change.key;
  }
}

TEST(Speed, SettingsWithoutCostDoNotKeepTheYardstickAway) {
  std::vector<RunRecord> records = {timed_run("transformer", 10000), timed_run("performer", 25000)};
  records[0].config.table("train").set("learning_rate", ConfigValue{0.1, ""});
  records[1].config.table("mixer").set("features", ConfigValue{int64_t{16}, ""});
  EXPECT_TRUE(speed_of(build_leaderboard(records), "performer").relative);
}

TEST(Speed, LostRunsHaveNoSpeed) {
  const Leaderboard board =
      build_leaderboard({lost_run("text", "transformer", RunStatus::kDiverged)});
  EXPECT_FALSE(speed_of(board, "transformer").tokens_per_s);
  EXPECT_FALSE(speed_of(board, "transformer").peak_memory_bytes);
}

TEST(Speed, MeasurementsCompareWithinTheirLengthAndWithThePaper) {
  const auto rows = speed_rows({measured("transformer", 1024, 4), measured("performer", 1024, 6),
                                measured("performer", 4096, 5)});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].model, "performer");
  EXPECT_DOUBLE_EQ(*rows[0].relative, 1.5);
  EXPECT_NEAR(*rows[0].paper_relative, 9.5 / 8.1, 1e-12);
  EXPECT_DOUBLE_EQ(*rows[1].relative, 1.0);
  EXPECT_FALSE(rows[2].relative) << "no Transformer was measured at 4096";
}

TEST(Speed, OfRepeatedMeasurementsTheLatestCounts) {
  std::vector<RunRecord> records = {measured("performer", 1024, 6), measured("performer", 1024, 7)};
  records[0].provenance.finished_utc = "2026-03-01T00:00:00Z";
  const auto rows = speed_rows(records);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].measured.steps_per_s, 6);
}

TEST(Speed, MeasurementsOfAnotherPresetStandBeside) {
  std::vector<RunRecord> records = {measured("transformer", 1024, 4),
                                    measured("linformer", 1024, 6),
                                    measured("linformer", 1024, 50)};
  records[2].preset = "small";
  records[2].provenance.finished_utc = "2026-03-01T00:00:00Z";
  const auto rows = speed_rows(records);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].preset, "paper");
  EXPECT_DOUBLE_EQ(*rows[0].relative, 1.5);
  EXPECT_EQ(rows[2].preset, "small");
  EXPECT_FALSE(rows[2].relative) << "no Transformer of that preset was measured";
}

TEST(Speed, MeasurementsWithAnotherSettingStandBeside) {
  std::vector<RunRecord> records = {measured("transformer", 1024, 4),
                                    measured("linformer", 1024, 6), measured("linformer", 1024, 50),
                                    measured("linformer", 1024, 5)};
  for (RunRecord& record : records) {
    record.config.table("model").set("layers", ConfigValue{int64_t{4}, ""});
    record.config.table("mixer").set("rank", ConfigValue{int64_t{256}, ""});
    // The first length of each measurement must not keep them apart.
    record.config.table("task").set("length", ConfigValue{int64_t{1024}, ""});
  }
  records[1].config.table("task").set("length", ConfigValue{int64_t{4096}, ""});
  records[1].config.table("train").set("learning_rate", ConfigValue{0.1, ""});
  records[2].config.table("model").set("layers", ConfigValue{int64_t{1}, ""});
  records[3].config.table("mixer").set("rank", ConfigValue{int64_t{16}, ""});
  std::map<std::string, std::optional<double>> relative;
  for (const SpeedRow& row : speed_rows(records)) {
    if (row.model == "linformer") relative[row.settings] = row.relative;
  }
  ASSERT_EQ(relative.size(), 3u);
  EXPECT_EQ(relative.at("mixer.rank=256, model.layers=4"), 1.5);
  EXPECT_EQ(relative.at("mixer.rank=16, model.layers=4"), 1.25)
      << "the mixer's settings may differ";
  EXPECT_EQ(relative.at("mixer.rank=256, model.layers=1"), std::nullopt);
}

TEST(Speed, AMechanismWithoutAttentionDropoutIsSetAgainstTheTransformer) {
  const auto with_dropout = [](RunRecord record, double rate) {
    record.config.table("model").set("attention_dropout", ConfigValue{rate, ""});
    return record;
  };
  std::vector<RunRecord> records = {with_dropout(measured("transformer", 1024, 4), 0.1),
                                    with_dropout(measured("reformer", 1024, 6), 0.0)};
  const auto relative_of_reformer = [&] {
    for (const SpeedRow& row : speed_rows(records)) {
      if (row.model == "reformer") return row.relative;
    }
    return std::optional<double>();
  };
  EXPECT_EQ(relative_of_reformer(), 1.5);
  // One without dropout, too, is nearer.
  records.push_back(with_dropout(measured("transformer", 1024, 12), 0.0));
  EXPECT_EQ(relative_of_reformer(), 0.5);
  // Two others leave the choice open.
  records.back() = with_dropout(measured("transformer", 1024, 12), 0.2);
  EXPECT_EQ(relative_of_reformer(), std::nullopt);
}

TEST(Speed, SettingsOfInferenceDoNotNameTraining) {
  std::vector<RunRecord> records = {measured("performer", 1024, 4), measured("performer", 1024, 6)};
  records[1].measurements[0].mode = "infer";
  records[1].config.table("model").set("embed_dim", ConfigValue{int64_t{128}, ""});
  for (const SpeedRow& row : speed_rows(records)) EXPECT_EQ(row.settings, "") << row.measured.mode;
}

TEST(Speed, MeasurementsDoNotEnterTheLeaderboard) {
  const Leaderboard board = build_leaderboard({measured("performer", 1024, 6)});
  EXPECT_TRUE(board.rows.empty());
  EXPECT_TRUE(board.columns.empty());
  EXPECT_EQ(board.speeds.size(), 1u);
}

TEST(Speed, OtherKernelsAreNoYardstick) {
  std::vector<RunRecord> records = {timed_run("transformer", 10000), timed_run("performer", 25000)};
  records[1].provenance.kernels["attention"] = "ref";
  EXPECT_FALSE(speed_of(build_leaderboard(records), "performer").relative);
  records = {measured("transformer", 1024, 4), measured("performer", 1024, 6)};
  records[1].provenance.kernels["attention"] = "ref";
  for (const SpeedRow& row : speed_rows(records)) EXPECT_NE(row.relative, 1.5) << row.model;
  EXPECT_EQ(speed_grids(speed_rows(records)).size(), 2u);
  EXPECT_TRUE(speed_rows(records).back().machine.ends_with("reference kernels") ||
              speed_rows(records).front().machine.ends_with("reference kernels"));
}

TEST(Speed, MeasurementsDoubtedForOneReasonHaveOneWarning) {
  std::vector<RunRecord> records = {measured("performer", 1024, 6), measured("linformer", 1024, 5),
                                    measured("transformer", 1024, 4)};
  records[0].measurements[0].warning = "the windows differ by 24 %";
  records[1].measurements[0].warning = "the windows differ by 31 %";
  records[2].measurements[0].warning = "the processor is hot";
  EXPECT_THAT(build_leaderboard(records).warnings,
              UnorderedElementsAre(HasSubstr("the processor is hot"),
                                   EndsWith("of 1 more marked ! in the tables")));
}

TEST(Speed, AMeasurementThatMayNotBeTheMachinesIsMarkedAndExplained) {
  RunRecord record = measured("performer", 1024, 6);
  record.measurements[0].warning = "the windows differ by 24 %";
  const Leaderboard board = build_leaderboard({record, measured("transformer", 1024, 4)});
  ASSERT_EQ(board.warnings.size(), 1u);
  EXPECT_NE(board.warnings[0].find("length 1,024: the windows differ by 24 %"), std::string::npos);
  int num_marked = 0;
  for (const auto& row : measurement_table(board).rows) {
    for (const TableCell& cell : row) num_marked += cell.text.find('!') != std::string::npos;
  }
  EXPECT_EQ(num_marked, 1);
}

}  // namespace
}  // namespace lra::report
