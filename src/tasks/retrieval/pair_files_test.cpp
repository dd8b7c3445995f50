#include "tasks/retrieval/pair_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

struct Row {
  int label;
  std::string ids, id1, id2, text1, text2;
  int64_t line;
  bool operator==(const Row&) const = default;
};

std::vector<Row> rows_of(const std::string& content, int num_columns = 5) {
  const TestFolder root;
  write_text(root.path("p.tsv"), content);
  std::vector<Row> rows;
  read_pairs(root.path("p.tsv"), num_columns, [&](const PairLine& pair) {
    rows.push_back({pair.label, std::string(pair.ids), std::string(pair.id1), std::string(pair.id2),
                    std::string(pair.text1), std::string(pair.text2), pair.line});
  });
  return rows;
}

std::string pair_error(const std::string& content, int num_columns = 5) {
  return error_of([&] { rows_of(content, num_columns); });
}

TEST(PairFiles, ReadsColumnsWithoutQuoting) {
  const std::vector<Row> expected = {{0, "0.0\ta\tb", "a", "b", "\"x", "y\"\"", 1},
                                     {1, "1\tc\td", "c", "d", "", "'", 2},
                                     {1, "1.0\te\tf", "e", "f", " g ", "\xFF", 3}};
  const std::string content = "0.0\ta\tb\t\"x\ty\"\"\r\n1\tc\td\t\t'\n1.0\te\tf\t g \t\xFF";
  EXPECT_EQ(rows_of(content), expected);
  EXPECT_EQ(rows_of(content + "\n"), expected);
  EXPECT_EQ(rows_of("\xEF\xBB\xBF" + content + "\n\r\n\n"), expected);
  EXPECT_EQ(rows_of("").size(), 0U);
  EXPECT_EQ(rows_of("1\ta\tb\n", 3), (std::vector<Row>{{1, "1\ta\tb", "a", "b", "", "", 1}}));
}

TEST(PairFiles, MalformedLinesAreNamed) {
  const std::string good = "1\ta\tb\tx\ty\n";
  EXPECT_EQ(pair_error(good), "");
  EXPECT_THAT(pair_error(good + "1\ta\tb\tx\n"), HasSubstr("p.tsv:2: line has 4 columns"));
  EXPECT_THAT(pair_error(good + "\n" + good), HasSubstr("p.tsv:2: is empty"));
  EXPECT_THAT(pair_error(good + good + "1\ta\tb\tx\ty\tz\n"),
              HasSubstr("p.tsv:3: line has 6 columns"));
  EXPECT_THAT(pair_error("2\ta\tb\tx\ty\n"), HasSubstr("p.tsv:1: label is '2'; expected 0, 1"));
  EXPECT_THAT(pair_error("label\ta\tb\tx\ty\n"), HasSubstr("label is 'label'"));
  EXPECT_THAT(pair_error("1\t\tb\tx\ty\n"), HasSubstr("id of a paper has 0 bytes"));
  EXPECT_THAT(pair_error("1\ta\t" + std::string(101, 'b') + "\tx\ty\n"), HasSubstr("101 bytes"));
  EXPECT_THAT(pair_error(good, 3), HasSubstr("line has 5 columns; expected label TAB id1 TAB id2"));
  EXPECT_THAT(pair_error(good + std::string((16 << 20) + 1, 'x')),
              HasSubstr("p.tsv:2: line has over 16,777,216 bytes"));
  EXPECT_THAT(error_of([] { read_pairs("/none/p.tsv", 5, [](const PairLine&) {}); }),
              HasSubstr("/none/p.tsv: there is no such file"));
}

TEST(PaperTexts, ComeFromAFolderOrLines) {
  const TestFolder root;
  write_text(root.path("texts/P1"), "one");
  write_text(root.path("texts/P2.txt"), "two\tand\r\nmore" + std::string(20000, 'x'));
  write_text(root.path("secret"), "secret");
  write_text(root.path("texts.tsv"),
             "P1\tone\nP2\ttwo\tthree" + std::string(20000, 'y') + "\nP3\t");
  const PaperTexts folder(root.path("texts")), lines(root.path("texts.tsv"));
  EXPECT_EQ(folder.text("P1", "x:1"), "one");
  EXPECT_EQ(folder.text("P2", "x:1"), "two and more" + std::string(10000 - 12, 'x'));
  EXPECT_EQ(lines.text("P1", "x:1"), "one");
  EXPECT_EQ(lines.text("P2", "x:1"), "two\tthree" + std::string(10000 - 9, 'y'));
  EXPECT_EQ(lines.text("P3", "x:1"), "");
  write_text(root.path("texts/P3"),
             "\xEF\xBB\xBF"
             "three");
  EXPECT_EQ(folder.text("P3", "x:1"), "three");
  write_text(root.path("texts/P4"), std::string("f\0o\0", 4));
  EXPECT_THAT(error_of([&] { folder.text("P4", "x:1"); }), HasSubstr("texts/P4: holds zero bytes"));
  EXPECT_THAT(error_of([&] { lines.text("P4", "x:7"); }), HasSubstr("x:7: paper 'P4' has no text"));
  EXPECT_THAT(error_of([&] { folder.text("../secret", "x:7"); }), HasSubstr("x:7: paper"));
  write_text(root.path("odd.tsv"), "P1\tone\nP1\ttwo\n");
  EXPECT_THAT(error_of([&] { PaperTexts texts(root.path("odd.tsv")); }),
              HasSubstr("odd.tsv:2: paper 'P1' occurs twice"));
  write_text(root.path("odd.tsv"), "P1 one\n");
  EXPECT_THAT(error_of([&] { PaperTexts texts(root.path("odd.tsv")); }),
              HasSubstr("odd.tsv:1: line does not begin"));
}

TEST(PairFiles, AreFoundInEveryLayout) {
  const TestFolder root;
  EXPECT_EQ(find_pair_files(root.path(".")).num_columns, 0);
  for (const char* split : {"train", "eval", "test"}) {
    write_text(root.path(std::string("new_aan_pairs.") + split + ".only_ids.tsv"), "");
  }
  EXPECT_EQ(find_pair_files(root.path(".")).num_columns, 3);
  const std::string base = root.path("lra_release/lra_release/tsv_data/new_aan_pairs.");
  for (const char* split : {"train", "eval", "test"}) write_text(base + split + ".tsv", "");
  const PairFiles files = find_pair_files(root.path("."));
  EXPECT_EQ(files.num_columns, 5);
  EXPECT_EQ(files.paths[1], base + "eval.tsv");
}

}  // namespace
}  // namespace lra::tasks
