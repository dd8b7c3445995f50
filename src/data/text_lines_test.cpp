#include "data/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "data/test_fixtures.h"

namespace lra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text, const LineLimits& limits) {
  std::vector<std::string> lines;
  read_lines(
      reader_of(text), "x.tsv",
      [&](std::string_view line, int64_t number, uint64_t offset) {
        EXPECT_EQ(number, static_cast<int64_t>(lines.size()) + 1);
        EXPECT_EQ(text.substr(offset, line.size()), line);
        lines.emplace_back(line);
      },
      limits);
  return lines;
}

TEST(TextLines, DoNotDependOnTheSizeOfBlocks) {
  for (size_t block_bytes = 1; block_bytes < 12; ++block_bytes) {
    EXPECT_THAT(lines_of("ab\r\ncde\rf\r\nlast", {.block_bytes = block_bytes}),
                ElementsAre("ab", "cde\rf", "last"));
  }
}

TEST(TextLines, MayBeginWithAByteOrderMarkAndEndWithEmptyLines) {
  for (size_t block_bytes = 1; block_bytes < 12; ++block_bytes) {
    const LineLimits limits{.block_bytes = block_bytes};
    EXPECT_THAT(lines_of("\xEF\xBB\xBF"
                         "ab\ncd\n\r\n\n",
                         limits),
                ElementsAre("ab", "cd"));
    EXPECT_THAT(lines_of("ab\n\xEF\xBB\xBF"
                         "cd",
                         limits),
                ElementsAre("ab",
                            "\xEF\xBB\xBF"
                            "cd"));
    EXPECT_THAT(lines_of("\xEF\xBB\xBF\n", limits), ElementsAre());
    EXPECT_THAT(error_of([&] { lines_of("ab\n\n\r\ncd", limits); }),
                HasSubstr("x.tsv:2: is empty"));
    for (const char* utf16 : {"\xFF\xFE"
                              "a",
                              "\xFE\xFF"
                              "a"}) {
      EXPECT_THAT(error_of([&] { lines_of(utf16, limits); }), HasSubstr("x.tsv: is UTF-16"));
    }
    EXPECT_THAT(error_of([&] { lines_of("<!DOCTYPE html>\n<title>404</title>", limits); }),
                HasSubstr("x.tsv: is an HTML page by its first bytes"));
    EXPECT_THAT(error_of([&] { lines_of("BZh91AY&SY\xE2\xDC\n", limits); }),
                HasSubstr("x.tsv: is a bzip2 file by its first bytes"));
    EXPECT_THAT(lines_of("BZh is a nickname", limits), ElementsAre("BZh is a nickname"));
  }
}

TEST(TextLines, ADocumentIsUtf8WithOneKindOfLineEnd) {
  const auto text = [](const std::string& bytes) { return document_text(bytes, "d"); };
  EXPECT_EQ(text("\xEF\xBB\xBF"
                 "a\r\nb\rc\n\r\n"),
            "a\nb\rc\n\n");
  EXPECT_EQ(text(""), "");
  for (const char* cut : {"a\xE2\x82", "a\xC3", "a\xF0\x9F\x98"}) EXPECT_EQ(text(cut), cut);
  for (const std::string& odd :
       {std::string("\xFF\xFE") + "a", std::string("\xFE\xFF"), std::string("a\0b", 3),
        std::string("caf\xE9 noir"), std::string("a\xED\xA0\x80 surrogate")}) {
    EXPECT_THAT(error_of([&] { text(odd); }), HasSubstr("expected UTF-8")) << odd;
  }
}

// Counting the line end or not must not depend on where a block ends.
TEST(TextLines, LimitCountsTheLineWithoutItsEnd) {
  for (size_t block_bytes = 1; block_bytes < 12; ++block_bytes) {
    const LineLimits limits{.block_bytes = block_bytes, .line_bytes = 4};
    EXPECT_THAT(lines_of("abcd\r\nx\n", limits), ElementsAre("abcd", "x"));
    EXPECT_THAT(error_of([&] { lines_of("x\nabcde\r\n", limits); }),
                HasSubstr("x.tsv:2: line has over 4 bytes"));
  }
}

}  // namespace
}  // namespace lra
