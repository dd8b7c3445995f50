#include "report/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/test_records.h"

namespace lra::report {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const Table& table_of(const std::vector<Table>& tables, TableKind kind) {
  for (const Table& table : tables) {
    if (table.kind == kind) return table;
  }
  return tables.at(tables.size());
}

RunRecord measured(const std::string& model, int64_t threads) {
  RunRecord record = finished_run("text", model, 60);
  record.provenance.threads = threads;
  record.measurements = {{.mode = "train", .dtype = "fp32", .length = 1024, .batch = 32}};
  return record;
}

TEST(Tables, EveryRowIsAsWideAsItsHeader) {
  std::vector<RunRecord> records = {measured("transformer", 2), measured("performer", 2)};
  const auto tables = report_tables(build_leaderboard(records));
  EXPECT_EQ(tables.size(), 4u);
  for (const Table& table : tables) {
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.header.size()) << table.title;
  }
}

TEST(Tables, TheMachineIsAColumnOnlyWhenThereAreSeveral) {
  const auto one =
      report_tables(build_leaderboard({measured("transformer", 2), measured("performer", 2)}));
  EXPECT_THAT(table_of(one, TableKind::kMeasurements).header, Not(Contains("Machine")));
  EXPECT_THAT(table_of(one, TableKind::kMeasurements).caption, HasSubstr("Test processor, 2"));
  const auto two =
      report_tables(build_leaderboard({measured("transformer", 2), measured("performer", 4)}));
  EXPECT_THAT(table_of(two, TableKind::kMeasurements).header, Contains("Machine"));
}

TEST(Tables, MeasurementsSayPresetAndRevision) {
  std::vector<RunRecord> records = {measured("transformer", 2), measured("performer", 2)};
  const Table one = table_of(report_tables(build_leaderboard(records)), TableKind::kMeasurements);
  EXPECT_THAT(
      one.caption,
      HasSubstr("Preset: paper. mode: train. dtype: fp32. batch: 32. Revision: 0123456789."));
  records[1].preset = "small";
  records[1].provenance.git_dirty = "ab";
  const Table two = table_of(report_tables(build_leaderboard(records)), TableKind::kMeasurements);
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
  const auto best = best_rows(board);
  EXPECT_EQ(board.rows[static_cast<size_t>(best[0])].model, "performer");
  EXPECT_EQ(best[1], -1);
}

}  // namespace
}  // namespace lra::report
