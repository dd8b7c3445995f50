#include "report/tables/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "records/test_records.h"
#include "report/report.h"

namespace lra::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<RunRecord> two_models() {
  std::vector<RunRecord> runs;
  for (const double percent : {60.0, 62.0, 64.0}) {
    runs.push_back(finished_run("text", "performer", percent, runs.size()));
    runs.push_back(finished_run("text", "local", percent - 5, runs.size()));
    runs.back().num_parameters = 53'100;
  }
  return runs;
}

std::string rendered(Format format, ResultsChoice choice = {}) {
  return render(two_models(), format, {.results = std::move(choice)});
}

TEST(ResultsTable, IsTheMeanAndDeviationOverSeedsWithTheBestInBold) {
  EXPECT_EQ(rendered(Format::kLatex),
            "\\begin{table}\n\\centering\n"
            "\\caption{Results. Test accuracy in percent, mean $\\pm$ standard deviation over 3 "
            "seeds.}\n\\begin{tabular}{lr}\n\\toprule\nModel & Text \\\\\n\\midrule\n"
            "performer & \\textbf{62.00 $\\pm$ 2.00} \\\\\n"
            "local & \\underline{57.00 $\\pm$ 2.00} \\\\\n\\bottomrule\n\\end{tabular}\n"
            "\\end{table}\n");
  EXPECT_THAT(rendered(Format::kMarkdown), HasSubstr("| performer | **62.00 ± 2.00** |\n"));
  EXPECT_THAT(rendered(Format::kSvg), HasSubstr("font-weight=\"bold\">62.00 ± 2.00</text>"));
}

TEST(ResultsTable, HasTheColumnsAndRowsThatWereChosen) {
  const Leaderboard board = build_leaderboard(two_models());
  const Table table = results_table(
      board,
      {.columns = {"parameters", "text", "seeds"}, .with_paper = true, .with_baselines = true});
  EXPECT_THAT(table.header, ElementsAre("Model", "Parameters", "Text", "Seeds"));
  EXPECT_EQ(table.rows[1][1].text, "53.1k");
  EXPECT_EQ(table.rows[1][3].text, "3");
  EXPECT_EQ(table.rows[2][0].text, "trivial: chance");
  EXPECT_EQ(table.rows[3][0].text, "Transformer (Tay et al. 2021)");
  EXPECT_EQ(table.rows[3][2].text, "64.27");
  EXPECT_EQ(results_table(board).rows.size(), 2u);
  EXPECT_THROW(results_table(board, {.columns = {"colour"}}), Error);
}

TEST(ResultsTable, SaysHowManySeedsWhereTheyDiffer) {
  std::vector<RunRecord> runs = two_models();
  runs.push_back(finished_run("text", "bigbird", 61));
  const Table table = results_table(build_leaderboard(runs));
  EXPECT_THAT(table.caption, HasSubstr("over n seeds"));
  EXPECT_EQ(table.rows[1][1].text, "61.00 (n=1)");
}

TEST(ResultsTable, OnlyFormatsOfOneTableTakeIt) {
  EXPECT_THROW(rendered(Format::kHtml), Error);
  EXPECT_THROW(rendered(Format::kJson), Error);
}

}  // namespace
}  // namespace lra::report
