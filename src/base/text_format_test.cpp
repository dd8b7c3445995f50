#include "base/text_format.h"

#include "base/quoted.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace lra {
namespace {

TEST(HumanBytes, HasOneDecimalAndNoThousands) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(1234567), "1.2 MB");
  EXPECT_EQ(human_bytes(999'960'000), "1.0 GB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "18.4 EB");
}

TEST(HumanDuration, IsAClock) {
  EXPECT_EQ(human_duration(0), "0:00");
  EXPECT_EQ(human_duration(7.9), "0:07");
  EXPECT_EQ(human_duration(125), "2:05");
  EXPECT_EQ(human_duration(3753), "1:02:33");
  EXPECT_EQ(human_duration(100 * 3600), "100:00:00");
  EXPECT_EQ(human_duration(-61), "-1:01");
  EXPECT_EQ(human_duration(NAN), "?");
  EXPECT_EQ(human_duration(1e300), "?");
}

TEST(Thousands, GroupsDigits) {
  EXPECT_EQ(thousands(0), "0");
  EXPECT_EQ(thousands(999), "999");
  EXPECT_EQ(thousands(25000), "25,000");
  EXPECT_EQ(thousands(-1234567), "-1,234,567");
  EXPECT_EQ(thousands(-123), "-123");
  EXPECT_EQ(thousands(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Numbers, ArePrintedWithFixedDecimals) {
  EXPECT_EQ(percent(0.6512), "65.12%");
  EXPECT_EQ(percent(1, 0), "100%");
  EXPECT_EQ(percent(NAN), "?");
  EXPECT_EQ(fixed(3.14159, 2), "3.14");
  EXPECT_EQ(fixed(-1e300, 1).size(), 304u);
}

TEST(Printable, DropsWhatATerminalActsOn) {
  EXPECT_EQ(printable("a\x1b[31mb\x07\x7f"), "a[31mb");
  EXPECT_EQ(printable("one\ntwo\tthree"), "one two three");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "31m");  // the one-character form of ESC [
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "ab");  // right-to-left override
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "ab");
}

TEST(Printable, KeepsUtf8AndReplacesWhatIsNone) {
  EXPECT_EQ(printable("größe 長さ 😀"), "größe 長さ 😀");
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(printable("a\xff"), "a" + replaced);
  EXPECT_EQ(printable("\xC3"), replaced);
  EXPECT_EQ(printable("\xC0\xAF"), replaced + replaced);                 // overlong slash
  EXPECT_EQ(printable("\xED\xA0\x80"), replaced + replaced + replaced);  // surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80").size(), 4 * replaced.size());  // past U+10FFFF
}

TEST(InQuotes, ShowsWhatAReaderCannotSee) {
  EXPECT_EQ(in_quotes("größe"), "'größe'");
  EXPECT_EQ(in_quotes("\xEF\xBB\xBFSource\tTarget\n"), "'\\ufeffSource\\tTarget\\n'");
  EXPECT_EQ(in_quotes("\x1b[2J\xFF"), "'\\x1b[2J\\xff'");
  EXPECT_EQ(in_quotes("a\xE2\x80\x8B"
                      "b"),
            "'a\\u200bb'");
  EXPECT_EQ(in_quotes(std::string(50, 'x')), "'" + std::string(40, 'x') + "...'");
  EXPECT_EQ(in_quotes("長さ", 1), "'長...'");
}

TEST(QuotedList, NamesTheFirstAndCountsTheOthers) {
  EXPECT_EQ(quoted_list({}), "nothing");
  EXPECT_EQ(quoted_list({"a"}), "'a'");
  EXPECT_EQ(quoted_list({"a", "b"}), "'a' and 'b'");
  EXPECT_EQ(quoted_list({"a", "b", "c"}), "'a', 'b' and 'c'");
  EXPECT_EQ(quoted_list({"a", "b", "c", "d", "e"}), "'a', 'b', 'c' and 2 more");
}

TEST(DisplayWidth, CountsTerminalColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("größe"), 5);
  EXPECT_EQ(display_width("長さ"), 4);
  EXPECT_EQ(display_width("e\xCC\x81"), 1);  // e and a combining accent
  EXPECT_EQ(display_width("█▌"), 2);
}

TEST(TextTable, AlignsTextLeftAndNumbersRight) {
  TextTable table({"model", "accuracy", "note"});
  table.add_row({"Linformer", "53.94", ""});
  table.add_row({"größer", "9.5%", "長 x"});
  table.add_row({"a\nb", "-", "y"});
  EXPECT_EQ(table.text(),
            "model      accuracy  note\n"
            "---------  --------  ----\n"
            "Linformer     53.94\n"
            "größer         9.5%  長 x\n"
            "a b               -  y\n");
}

TEST(TextTable, WithoutRowsIsItsHeader) {
  const TextTable table({"a", "bb"});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.text(), "a  bb\n-  --\n");
}

TEST(TextTable, WantsAsManyCellsAsColumns) {
  TextTable table({"a", "b"});
  EXPECT_THROW(table.add_row({"1"}), CheckFailure);
}

}  // namespace
}  // namespace lra
