#include "report/tables/literature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/atomic_file.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

using ::testing::HasSubstr;

std::string file_with(const std::string& results) {
  const std::string path = ::testing::TempDir() + "/literature.json";
  write_file_atomically(path, R"({"about": "", "results": [)" + results + "]}");
  return path;
}

Literature literature_of(const std::string& results, const std::string& edited = "") {
  return read_literature(file_with(results), {{"local", "fixed pattern"}}, edited);
}

constexpr const char* kResult = R"({"model": "S0", "family": "state space", "source": "a paper",
    "kind": "own", "accuracy": {"listops": 60, "text": 80, "retrieval": 90, "image": 85,
    "pathfinder": 95, "pathx": "FAIL"}})";

TEST(Literature, AFailureCountsAsChanceInTheAverageOfSix) {
  const Literature literature = literature_of(kResult);
  const PublishedResult& best = literature.results.at(0);
  EXPECT_EQ(best.model, "S0");
  EXPECT_NEAR(*best.average(kNumScoredTasks), 82, 1e-9);
  EXPECT_NEAR(*best.average(kNumPaperTasks), (5 * 82 + 50) / 6.0, 1e-9);
  EXPECT_EQ(best.text_of(PaperTask::kPathX), "FAIL");
}

TEST(Literature, HoldsThePapersOwnModels) {
  const Literature literature = literature_of(kResult);
  ASSERT_EQ(literature.results.size(), 1 + paper_models().size());
  EXPECT_EQ(literature_table(literature).rows.size(), literature.results.size());
  for (const PublishedResult& result : literature.results) {
    if (result.model != "Local Attention") continue;
    EXPECT_EQ(result.family, "fixed pattern");
    EXPECT_EQ(result.text_of(PaperTask::kText), "52.98");
  }
}

TEST(Literature, WithoutAFigureThereIsNoAverage) {
  const Literature literature = literature_of(
      R"({"model": "P", "family": "f", "source": "s", "kind": "own", "accuracy": {"pathx": 61.4}})");
  const PublishedResult& last = literature.results.back();
  EXPECT_EQ(last.model, "P");
  EXPECT_FALSE(last.average(kNumPaperTasks));
  EXPECT_EQ(last.text_of(PaperTask::kText), "-");
}

TEST(Literature, RefusesATaskThatNobodyKnows) {
  try {
    literature_of(
        R"({"model": "P", "family": "f", "source": "s", "kind": "own", "accuracy": {"pathy": 1}})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("pathy"));
  }
}

TEST(Literature, FiguresOfAnEditedFileAreUnverified) {
  const Literature literature = literature_of(kResult, "the file was edited");
  for (const PublishedResult& result : literature.results) {
    const bool from_file = result.model == "S0";
    EXPECT_EQ(result.kind, from_file ? "unverified" : "own") << result.model;
    EXPECT_EQ(result.note == "the file was edited", from_file) << result.model;
  }
}

}  // namespace
}  // namespace lra::report
