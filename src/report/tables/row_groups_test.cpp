#include "report/tables/row_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "records/test_records.h"

namespace lra::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunRecord with_rank(RunRecord run, int64_t rank) {
  run.config.table("mixer").set("rank", ConfigValue{rank, ""});
  run.fingerprint += "/" + std::to_string(rank);
  return run;
}

int64_t rank_of(const RunRecord& run) {
  return std::get<int64_t>(run.config.find("mixer")->as_table()->find("rank")->value);
}

TEST(RowGroups, SeedsShareACell) {
  std::vector<RunRecord> records = {finished_run("text", "linformer", 53, 0),
                                    finished_run("text", "linformer", 54, 1)};
  for (RunRecord& run : records) {
    run.config.table("train").set("seed", ConfigValue{static_cast<int64_t>(run.seed), ""});
  }
  std::vector<std::string> warnings;
  const auto groups = group_runs(records, &warnings);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].runs.at("text").size(), 2u);
  EXPECT_EQ(groups[0].settings, "");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(RowGroups, OtherSettingsGetARowOfTheirOwn) {
  std::vector<RunRecord> records = {
      with_rank(finished_run("text", "linformer", 53, 0), 256),
      with_rank(finished_run("text", "linformer", 54, 1), 256),
      with_rank(finished_run("text", "linformer", 50, 0), 128),
      with_rank(finished_run("image", "linformer", 38, 0), 256),
  };
  std::vector<std::string> warnings;
  const auto groups = group_runs(records, &warnings);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].runs.size(), 2u);
  EXPECT_EQ(groups[0].runs.at("text").size(), 2u);
  EXPECT_EQ(groups[0].settings, "text: mixer.rank=256");
  EXPECT_EQ(groups[0].task_settings.at("text"), "mixer.rank=256");
  EXPECT_EQ(groups[0].task_settings.at("image"), "") << "settings of another task";
  EXPECT_EQ(groups[1].runs.size(), 1u);
  EXPECT_EQ(groups[1].settings, "mixer.rank=128");
}

TEST(RowGroups, ControlsHaveRowsThatNameThem) {
  std::vector<RunRecord> records = {finished_run("text", "linformer", 53, 0),
                                    finished_run("image", "linformer", 38, 0),
                                    finished_run("image", "linformer", 30, 0)};
  records[1].config.table("model").set("receptive_field", ConfigValue{int64_t{64}, ""});
  records[2].config.table("train").set("token_order", ConfigValue{std::string("shuffled"), ""});
  records[2].fingerprint = "another";
  std::vector<std::string> warnings;
  const auto groups = group_runs(records, &warnings);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].settings, "");
  EXPECT_EQ(groups[1].settings, "model.receptive_field=64") << "though alone on its task";
  EXPECT_EQ(groups[1].task_settings.at("image"), groups[1].settings);
  EXPECT_EQ(groups[2].settings, "train.token_order=shuffled");
}

TEST(RowGroups, AnAblationOverAllTasksStaysTogether) {
  std::vector<RunRecord> records;
  for (const char* task : {"text", "image", "listops"}) {
    for (const int64_t rank : {128, 256}) {
      records.push_back(with_rank(finished_run(task, "linformer", 50), rank));
    }
  }
  std::vector<std::string> warnings;
  const auto groups = group_runs(records, &warnings);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].runs.size(), 3u);
  EXPECT_EQ(groups[1].runs.size(), 3u);
  for (const RowGroup& group : groups) {
    std::set<int64_t> ranks;
    for (const auto& [task, runs] : group.runs) ranks.insert(rank_of(*runs.at(0)));
    EXPECT_EQ(ranks.size(), 1u) << "a row mixes settings";
  }
}

TEST(RowGroups, TheMainRowHasTheRunsThatSayMost) {
  RunRecord full = with_rank(finished_run("text", "linformer", 60, 0), 64);
  std::vector<RunRecord> records = {full};
  for (const uint64_t seed : {1, 2}) {  // more runs, but short ones
    records.push_back(with_rank(finished_run("text", "linformer", 53, seed), 128));
    records.back().steps = 100;
  }
  const std::vector<RowGroup> rows = group_runs(records, nullptr);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rank_of(*rows[0].runs.at("text")[0]), 64);
}

TEST(RowGroups, SettingsOfLaterProgramsComeLastInALabel) {
  RunRecord earlier = with_rank(finished_run("text", "linformer", 60, 0), 64);
  RunRecord later = with_rank(finished_run("text", "linformer", 60, 1), 128);
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    later.config.table("mixer").set(key, ConfigValue{int64_t{1}, ""});
  }
  const std::vector<RowGroup> rows = group_runs({earlier, later}, nullptr);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].settings + rows[1].settings,
            "text: mixer.rank=128, mixer.a=1, mixer.b=1, mixer.c=1, 2 moremixer.rank=64");
}

TEST(RowGroups, PresetCheckpointValidationAndDivisionKeepRunsApart) {
  std::vector<RunRecord> records(5, finished_run("text", "linformer", 53));
  for (size_t i = 0; i < records.size(); ++i) records[i].fingerprint = std::to_string(i);
  records[1].preset = "release";
  records[2].checkpoint = "best";
  records[3].validation = "heldout";
  records[4].division = "free-for-all";
  std::vector<std::string> warnings;
  EXPECT_EQ(group_runs(records, &warnings).size(), 5u);
}

TEST(RowGroups, RunsOnDifferentDataHaveNoMean) {
  std::vector<RunRecord> records = {finished_run("text", "linformer", 53, 0),
                                    finished_run("text", "linformer", 55, 1),
                                    finished_run("text", "linformer", 51, 2),
                                    lost_run("text", "linformer", RunStatus::kFailed, 3)};
  std::vector<std::string> warnings;
  EXPECT_EQ(group_runs(records, &warnings).size(), 1u);
  records[0].data_hash = records[1].data_hash = "00112233445566778899aabbccddeeff";
  records[2].data_hash = "ff112233445566778899aabbccddeeff";
  records[3].data_hash = "";  // failed before it read any
  const auto groups = group_runs(records, &warnings);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].settings, "text: data=00112233");
  EXPECT_THAT(groups[0].runs.at("text"), ElementsAre(&records[0], &records[1], &records[3]));
  EXPECT_EQ(groups[1].settings, "data=ff112233");
}

TEST(RowGroups, RunsOfDifferentCodeHaveNoMean) {
  std::vector<RunRecord> records = {finished_run("text", "layers:Mine", 53, 0),
                                    finished_run("text", "layers:Mine", 55, 1)};
  std::vector<std::string> warnings;
  records[0].python = PythonCode{.source_sha256 = "0011223344"};
  records[1].python = records[0].python;
  EXPECT_EQ(group_runs(records, &warnings).size(), 1u);
  records[1].python->source_sha256 = "ff11223344";
  const auto groups = group_runs(records, &warnings);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[1].settings, "code=ff112233");
}

TEST(RowGroups, TheSameRunCountsOnceAndTheLatestWins) {
  std::vector<RunRecord> records = {finished_run("text", "linformer", 53),
                                    finished_run("text", "linformer", 55),
                                    finished_run("text", "linformer", 54)};
  records[1].provenance.finished_utc = "2026-02-01T00:00:00Z";
  std::vector<std::string> warnings;
  const auto groups = group_runs(records, &warnings);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_THAT(groups[0].runs.at("text"), ElementsAre(&records[1]));
  EXPECT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], HasSubstr("more than once"));
}

TEST(RowGroups, AFinishedRunIsNotDisplacedByALaterUnfinishedCopy) {
  std::vector<RunRecord> records = {finished_run("text", "linformer", 53),
                                    lost_run("text", "linformer", RunStatus::kStopped)};
  records[1].provenance.finished_utc = "2026-02-01T00:00:00Z";
  for (int order = 0; order < 2; ++order) {
    std::vector<std::string> warnings;
    const auto groups = group_runs(records, &warnings);
    ASSERT_EQ(groups.at(0).runs.at("text").size(), 1u);
    EXPECT_EQ(groups[0].runs.at("text")[0]->status, RunStatus::kDone);
    std::swap(records[0], records[1]);
  }
}

TEST(RowGroups, MeasurementsAreNoRuns) {
  std::vector<RunRecord> records = {finished_run("text", "linformer", 53)};
  records[0].kind = "bench";
  std::vector<std::string> warnings;
  EXPECT_THAT(group_runs(records, &warnings), IsEmpty());
}

}  // namespace
}  // namespace lra::report
