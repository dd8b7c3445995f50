#include "report/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/test_records.h"

namespace lra::report {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

RunRecord measured(const std::string& model, int64_t threads) {
  RunRecord record = finished_run("text", model, 60);
  record.provenance.threads = threads;
  record.measurements = {
      {.mode = "train", .dtype = "fp32", .length = 1024, .batch = 32, .gemm_flops_per_s = 1}};
  return record;
}

TEST(Tables, EveryRowIsAsWideAsItsHeader) {
  std::vector<RunRecord> records = {measured("transformer", 2), measured("performer", 2)};
  const Leaderboard board = build_leaderboard(records);
  for (const auto make :
       {accuracy_table, protocol_table, training_speed_table, measurement_table}) {
    const Table table = make(board);
    EXPECT_FALSE(table.rows.empty()) << table.title;
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.header.size()) << table.title;
  }
}

TEST(Tables, TheMachineIsAColumnOnlyWhenThereAreSeveral) {
  const Table one =
      measurement_table(build_leaderboard({measured("transformer", 2), measured("performer", 2)}));
  EXPECT_THAT(one.header, Not(Contains("Machine")));
  EXPECT_THAT(one.caption, HasSubstr("Test processor, 2"));
  const Table two =
      measurement_table(build_leaderboard({measured("transformer", 2), measured("performer", 4)}));
  EXPECT_THAT(two.header, Contains("Machine"));
}

TEST(Tables, MeasurementsSayPresetAndRevision) {
  std::vector<RunRecord> records = {measured("transformer", 2), measured("performer", 2)};
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

TEST(Tables, NumbersReadWell) {
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
    EXPECT_EQ(rank_of(board, row, ranked_figure(0)),
              row.model == "performer" ? Emphasis::kBest : Emphasis::kSecond);
    EXPECT_EQ(rank_of(board, row, ranked_figure(1)), Emphasis::kPlain);
  }
}

}  // namespace
}  // namespace lra::report
