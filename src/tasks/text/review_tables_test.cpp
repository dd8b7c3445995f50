#include "tasks/text/review_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/test_fixtures.h"
#include "tasks/all.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

class ReviewTable : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    write_text(root_.path(name), content);
    return root_.path(name);
  }
  // `count` reviews of either label.
  static std::string rows(int count, const char* bad, const char* good) {
    std::string text;
    for (int i = 0; i < 2 * count; ++i) {
      text += "\"Review no. " + std::to_string(i) + ", with a \"\"quote\"\"\"," +
              (i % 2 ? good : bad) + "\n";
    }
    return text;
  }
  Dataset imported(const std::vector<std::string>& sources, const std::string& out) {
    QuietProgress progress;
    task_->import(sources, root_.path(out), progress).writer.publish();
    return open_dataset(kTextTask, *task_, root_.path(out));
  }

  std::unique_ptr<Task> task_ = kTextTask.make({});
  TestFolder root_;
};

TEST_F(ReviewTable, OfTwoFilesHasTheSplitsOfTheirNames) {
  const Dataset data = imported({file("train.csv", "text,label\n" + rows(30, "0", "1")),
                                 file("test.csv", "text,label\n" + rows(20, "0", "1"))},
                                "data");
  EXPECT_EQ(data.split("train").size(), 60);
  EXPECT_EQ(data.split("test").size(), 40);
  const auto bytes = data.split("train").stored_bytes(30);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "Review no. 1, with a \"quote\"");
  EXPECT_EQ(data.split("train").label(30), 1);
  // An export is read back as the same data.
  task_->export_official(data, root_.path("official"));
  EXPECT_EQ(imported({root_.path("official")}, "again").hash(), data.hash());
}

TEST_F(ReviewTable, OfOneFileHasItsTestDrawnAndSaysSo) {
  const std::string all =
      file("IMDB Dataset.csv", "review,sentiment\n" + rows(50, "negative", "positive"));
  const Dataset data = imported({all}, "data");
  EXPECT_EQ(data.split("train").size(), 50);
  EXPECT_EQ(data.split("test").size(), 50);
  ASSERT_EQ(data.manifest().notes.size(), 1U);
  EXPECT_THAT(data.manifest().notes[0], HasSubstr("drawn"));
  EXPECT_EQ(imported({all}, "again").hash(), data.hash());
}

TEST_F(ReviewTable, OfAFolderIsThatOfItsTables) {
  std::filesystem::create_directories(root_.path("imdb/plain_text"));
  (void)file("imdb/README.md", "---\n");
  (void)file("imdb/plain_text/train.csv", "text,label\n" + rows(30, "0", "1"));
  (void)file("imdb/plain_text/test.csv", "text,label\n" + rows(20, "0", "1"));
  (void)file("imdb/plain_text/unsupervised.csv", "text,label\nnot rated,-1\n");
  const Dataset data = imported({root_.path("imdb")}, "data");
  EXPECT_EQ(data.split("train").size(), 60);
  EXPECT_EQ(data.split("test").size(), 40);
}

TEST_F(ReviewTable, OddRowsAreRefused) {
  const auto refused = [&](const std::string& content) {
    return error_of([&] { imported({file("a.csv", content)}, "data"); });
  };
  EXPECT_THAT(refused("text,label\na,-1\n"), HasSubstr("a.csv row 1: the label is '-1'"));
  EXPECT_THAT(refused("text,label,split\na,1,val\n"),
              HasSubstr("has a split for validation; expected train and test alone"));
  EXPECT_THAT(refused("text,label,split\na,1,train\nb,0,\n"),
              HasSubstr("a.csv row 2: the split is ''"));
  EXPECT_THAT(error_of([&] { imported({root_.path("none.csv")}, "data"); }), HasSubstr("none.csv"));
}

}  // namespace
}  // namespace lra::tasks
