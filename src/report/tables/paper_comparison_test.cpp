#include "report/tables/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/test_records.h"
#include "report/report.h"
#include "report/tables/literature.h"

namespace lra::report {
namespace {

using ::testing::HasSubstr;

AnalysisRecord analysis(const std::string& kind, const std::string& task,
                        const std::string& model) {
  AnalysisRecord record;
  record.kind = kind;
  record.task = task;
  record.task_title = task;
  record.model = record.model_title = model;
  record.preset = "small";
  record.checkpoint = "last";
  record.step = 3000;
  return record;
}

std::vector<std::string> texts(const std::vector<TableCell>& row) {
  std::vector<std::string> all;
  for (const TableCell& cell : row) all.push_back(cell.text);
  return all;
}

RunRecord inference_of(const std::string& model, double speed) {
  RunRecord record = finished_run("text", model, 60);
  record.kind = "bench";
  for (const int64_t length : {1024, 4096}) {
    record.measurements.push_back({.mode = "train",
                                   .dtype = "fp32",
                                   .length = length,
                                   .batch = 32,
                                   .steps_per_s = speed,
                                   .windows = 5,
                                   .peak_tensor_bytes = 2000000000,
                                   .gemm_flops_per_s = 1});
  }
  return record;
}

TEST(ComparisonTables, Table2HasThePapersLayoutAndFiguresBeside) {
  const std::vector<RunRecord> records = {inference_of("performer", 6),
                                          inference_of("transformer", 2)};
  const Leaderboard board = build_leaderboard(records);
  const std::vector<Table> tables =
      efficiency_tables({records, board, {}, speed_grids(board.speeds), {}}, "train");
  ASSERT_EQ(tables.size(), 1u);
  const Table& table = tables[0];
  EXPECT_EQ(table.header,
            (std::vector<std::string>{"Model", "1K steps/s", "1K ratio", "1K paper", "4K steps/s",
                                      "4K ratio", "4K paper", "1K memory", "1K paper", "4K memory",
                                      "4K paper"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][0].text, "transformer") << "the paper's order";
  EXPECT_EQ(texts(table.rows[1]),
            (std::vector<std::string>{"performer", "6.000", "3.00x", "1.17x", "6.000", "3.00x",
                                      "5.71x", "2.0 GB", "0.37 GB", "2.0 GB", "1.06 GB"}));
}

TEST(ComparisonTables, Table3SetsThePapersFiguresBesideOursOnImageAlone) {
  AnalysisRecord image = analysis("generalization", "image", "linformer");
  image.generalization = GeneralizationResult{{1, 1, 0.9, 100}, {1, 1, 0.4, 100}, 0.5, 0.05};
  AnalysisRecord text = analysis("generalization", "text", "linformer");
  text.generalization = image.generalization;
  const Table table = generalization_table({{image, {}}, {text, {}}});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(
      texts(table.rows[1]),
      (std::vector<std::string>{"Image", "linformer", "small preset, last weights, step 3,000",
                                "90.00", "40.00", "+50.00 ± 5.00", "97.23", "38.56", "+58.67"}));
  EXPECT_EQ(table.rows[0][6].text, "-");
}

TEST(ComparisonTables, FiguresOfSuspectDataAreMarked) {
  AnalysisRecord good = analysis("generalization", "image", "linformer");
  good.generalization = GeneralizationResult{{1, 1, 0.9, 100}, {1, 1, 0.4, 100}, 0.5, 0.05};
  AnalysisRecord suspect = good;
  suspect.data_checks = {{{.check = "copies", .split = "test", .text = "9 are of train"}}};
  const Table table = generalization_table({{good, {}}, {suspect, {}}});
  EXPECT_EQ(signs_of(table.rows[0][1].marks), "");
  EXPECT_EQ(signs_of(table.rows[1][1].marks), "†");
  EXPECT_THAT(table.caption, HasSubstr("† suspect data: copies (test): 9 are of train."));
  EXPECT_EQ(generalization_table({{good, {}}}).caption.find("†"), std::string::npos);
}

TEST(ComparisonTables, Table5SaysWhatWasNeverReached) {
  AnalysisRecord record = analysis("convergence", "image", "linformer");
  record.convergence = ConvergenceResult{
      175, {{0.30, 350, 12.5}, {0.35, {}, {}}}, Evaluation{525, 1, 0.34, 100}, 700};
  const Table table = convergence_table({{record, {}}});
  EXPECT_EQ(table.rows[0][3].text, "350 (0:12)");
  EXPECT_EQ(table.rows[0][4].text, "not in 700");
  EXPECT_EQ(table.rows[0][5].text, "452");
  EXPECT_EQ(table.rows[0][6].text, "875");
}

TEST(ComparisonTables, Table5StartsAboveChance) {
  AnalysisRecord record = analysis("convergence", "text", "linformer");
  record.convergence = ConvergenceResult{175, {{0.30, 350, 12.5}, {0.35, 350, 12.5}}, {}, 700};
  EXPECT_TRUE(convergence_table({{record, {}}}).rows.empty());
  record.convergence->thresholds.push_back({0.6, 700, 25.0});
  const Table table = convergence_table({{record, {}}});
  EXPECT_EQ(table.header[3], "to 60 %");
  EXPECT_EQ(table.rows[0][3].text, "700 (0:25)");
}

TEST(ComparisonTables, ASpanStandsBesideTheUniformOne) {
  AnalysisRecord record = analysis("span", "pathfinder", "transformer");
  record.span = SpanResult{};
  record.span->tokens = {170.5, 10, 341, {100, 241}, {}};
  record.span->mean_length = 1024;
  const Table table = span_table({{record, {}}});
  EXPECT_EQ(table.rows[0][0].text, "Pathfinder");
  EXPECT_EQ(table.rows[0][3].text, "170.5");
  EXPECT_EQ(table.rows[0][5].text, "341.0");
  EXPECT_EQ(table.rows[0][6].text, "0.50x");
  EXPECT_EQ(table.rows[0][11].text, "100, 241");
}

TEST(ComparisonTables, AControlStandsBesideTheRunsOwnScoreAndTheBaselines) {
  AnalysisRecord controls = analysis("controls", "text", "performer");
  controls.controls = ControlsResult{{{"none", "", Evaluation{1, 1, 0.625, 200}, ""},
                                      {"receptive field", "16", Evaluation{1, 1, 0.5, 200}, ""},
                                      {"length", "4000", {}, "bound to 1,000"}},
                                     {{"majority", 0.5}}};
  AnalysisRecord transfer = analysis("transfer", "pathfinder", "transformer");
  transfer.transfer = TransferResult{
      "pathx", "Path-X", 1, "d", {{"positions", "stretched", Evaluation{1, 1, 0.51, 100}, ""}}};
  const Table table = controls_table({{transfer, {}}, {controls, {}}});
  ASSERT_EQ(table.rows.size(), 5u);
  const std::vector<std::string> row = texts(table.rows[1]);
  EXPECT_EQ(std::vector<std::string>(row.begin() + 3, row.end()),
            (std::vector<std::string>{"Text", "receptive field 16", "50.00", "-12.50", "200"}));
  EXPECT_EQ(table.rows[2].back().text, "bound to 1,000");
  EXPECT_EQ(table.rows[3][4].text, "baseline: majority");
  EXPECT_EQ(table.rows[4][3].text, "Path-X");
  EXPECT_EQ(table.rows[4][6].text, "-") << "no score of its own on that task";
}

TEST(ComparisonTables, EveryLayerHasItsReach) {
  AnalysisRecord record = analysis("reach", "text", "s4d");
  record.reach = ReachResult{{{"layer 0", 1200, 3000, {1}, 64}, {"all layers", 9, 3000, {1}, {}}},
                             {{"none", "", Evaluation{1, 1, 0.6, 200}, ""},
                              {"layer 0 in windows of", "256", Evaluation{1, 1, 0.6, 200}, ""}},
                             50};
  const Table table = reach_table({{record, {}}});
  ASSERT_EQ(table.rows.size(), 2u);
  const std::vector<std::string> row = texts(table.rows[0]), all = texts(table.rows[1]);
  EXPECT_EQ(std::vector<std::string>(row.begin() + 3, row.end()),
            (std::vector<std::string>{"layer 0", "1,200", "3,000", "64", "256"}));
  EXPECT_EQ(all[6], "-");
}

TEST(ComparisonTables, EveryFormatButCsvHasTheAnalyses) {
  AnalysisRecord record = analysis("convergence", "image", "linformer");
  record.convergence = ConvergenceResult{175, {{0.30, 1234, {}}}, {}, 7000};
  const std::vector<Analysis> analyses = {{record, {}}};
  for (const Format format : {Format::kText, Format::kMarkdown, Format::kLatex, Format::kHtml}) {
    EXPECT_THAT(render({finished_run("image", "linformer", 40)}, format, {.analyses = analyses}),
                HasSubstr("1,234"));
  }
  EXPECT_THAT(
      render({finished_run("image", "linformer", 40)}, Format::kJson, {.analyses = analyses}),
      HasSubstr("1234"));
}

}  // namespace
}  // namespace lra::report
