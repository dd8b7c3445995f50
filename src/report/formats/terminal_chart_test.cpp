#include "report/formats/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text_format.h"

namespace lra::report {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Curve curve(const std::string& name, double first, double last) {
  return {name, {{.step = 100, .accuracy = first}, {.step = 200, .accuracy = last}}};
}

std::vector<std::string> lines_of(const std::vector<Curve>& curves, TerminalLook look = {}) {
  std::istringstream in(terminal_chart(curves, look));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TerminalChart, LabelsTheEndsBestOnTop) {
  const auto lines = lines_of({curve("flat", 0.5, 0.5), curve("rising", 0.5, 0.9)});
  EXPECT_THAT(lines[0], StartsWith("  90 % |"));
  EXPECT_THAT(lines[0], EndsWith("A A rising 90.0"));
  EXPECT_THAT(lines[13], StartsWith("  50 % |"));
  EXPECT_THAT(lines[13], EndsWith("B B flat 50.0"));
  EXPECT_THAT(lines[15], EndsWith("200 steps"));
}

TEST(TerminalChart, NoLabelIsOnAnother) {
  std::vector<Curve> many;
  for (int i = 0; i < 20; ++i) many.push_back(curve("model " + std::to_string(i), 0.4, 0.5));
  many.push_back(curve("last", 0.4, 0.1));
  const std::string text = terminal_chart(many, {});
  for (const Curve& one : many) EXPECT_THAT(text, HasSubstr(" " + one.name + " "));
}

TEST(TerminalChart, FitsEightyColumns) {
  const std::string name(60, 'x');
  for (const std::string& line : lines_of({curve(name, 0.1, 0.2), curve("b", 0.1, 0.9)}))
    EXPECT_LE(display_width(line), 80) << line;
  for (const std::string& line : lines_of({curve(name, 0.1, 0.2)}, {.braille = true}))
    EXPECT_LE(display_width(line), 80) << line;
}

TEST(TerminalChart, DrawsDotsAndColorsWhereTheTerminalHasThem) {
  const std::vector<Curve> one = {curve("a", 0.1, 0.9)};
  const std::string plain = terminal_chart(one, {}), dots = terminal_chart(one, {.braille = true}),
                    color = terminal_chart(one, {.color = true, .braille = true});
  EXPECT_THAT(plain, Not(HasSubstr("\xe2")));
  EXPECT_THAT(dots, HasSubstr("\xe2\xa0"));
  EXPECT_THAT(dots, Not(HasSubstr("\x1b")));
  EXPECT_THAT(color, HasSubstr("\x1b[32m"));
}

TEST(TerminalChart, ASingleLevelIsALine) {
  const auto lines = lines_of({curve("a", 0, 0)});
  EXPECT_THAT(lines[13], StartsWith("   0 % |"));
  EXPECT_THAT(lines[13], HasSubstr("AAAA"));
}

}  // namespace
}  // namespace lra::report
