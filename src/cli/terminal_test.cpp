#include "cli/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text_format.h"

namespace lra::cli {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kHeader = {"setting", "default", "meaning"};
const std::vector<std::vector<std::string>> kRows = {
    {"train.batch_size", "32",
     "examples per step, of all ranks together, for every task and model"},
    {"train.steps", "5000", "number of updates"}};

TEST(Terminal, ATableIsBrokenAtTheWidth) {
  std::istringstream lines(fitted_table(kHeader, kRows, 60));
  std::string words;
  for (std::string line; std::getline(lines, line); words += line + " ") {
    EXPECT_LE(display_width(line), 60) << line;
  }
  for (const char* word : {"examples", "together,", "model", "updates"}) {
    EXPECT_THAT(words, HasSubstr(word));
  }
}

TEST(Terminal, WithoutAWidthEachRowIsALine) {
  const std::string text = fitted_table(kHeader, kRows, 0);
  EXPECT_THAT(text, HasSubstr(kRows[0][2]));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(Terminal, AWordThatIsTooLongStaysWhole) {
  const std::string word(40, 'x');
  EXPECT_THAT(fitted_table({"name"}, {{word}}, 20), HasSubstr(word));
}

}  // namespace
}  // namespace lra::cli
