#include "report/formats/markup.h"

#include <gtest/gtest.h>

namespace lra::report {
namespace {

TEST(Markup, CleanTakesOutWhatATerminalActsOn) {
  const std::string text = clean(
      "a\x1b[31mred\x07\r\n\tb\xC2\x9B"
      "c\x7f");
  for (const char c : text) {
    EXPECT_GE(static_cast<unsigned char>(c), 0x20);
    EXPECT_NE(c, '\x7f');
  }
  EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << "the one-byte escape of ISO 6429";
}

TEST(Markup, CleanTakesOutCharactersThatReorderOrHideText) {
  EXPECT_EQ(clean("a\xE2\x80\xAE"
                  "b\xE2\x81\xA6"
                  "c\xEF\xBB\xBF"
                  "d\xE2\x80\x8B"
                  "e\xD8\x9C"
                  "f"),
            "abcdef");
}

TEST(Markup, CleanKeepsOrdinaryText) {
  EXPECT_EQ(clean("Überprüfung ± 日本"), "Überprüfung ± 日本");
}

TEST(Markup, HtmlEscapesMarkupAndBothQuotes) {
  EXPECT_EQ(html("<a href=\"x\" b='&'>"), "&lt;a href=&quot;x&quot; b=&#39;&amp;&#39;&gt;");
}

TEST(Markup, MarkdownHasNoColumnBreakMarkupOrLink) {
  EXPECT_EQ(markdown("a|b *c* <i> `d` [e](f)"), "a\\|b \\*c\\* \\<i\\> \\`d\\` \\[e\\](f)");
  EXPECT_EQ(markdown("https://x www.y"), "https\\://x www\\.y");
  EXPECT_EQ(markdown("_a_ :smile: + b"), "\\_a\\_ \\:smile: + b");
  EXPECT_EQ(markdown("+ b"), "\\+ b");
}

TEST(Markup, MarkdownOfOrdinaryWordsHasNoEscapes) {
  const std::string text = "division: free-for-all (2,000 of 25,000 steps, num_test=5)!";
  EXPECT_EQ(markdown(text), text);
}

TEST(Markup, LatexHasNoCommands) {
  EXPECT_EQ(latex("\\input{x} 5% $a_b^c$ #&~"),
            "\\textbackslash{}input\\{x\\} 5\\% \\$a\\_b\\textasciicircum{}c\\$ "
            "\\#\\&\\textasciitilde{}");
}

TEST(Markup, CsvQuotesAndStopsFormulas) {
  EXPECT_EQ(csv("plain"), "plain");
  EXPECT_EQ(csv("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv("=1+1"), "'=1+1");
  EXPECT_EQ(csv("@sum(a,b)"), "\"'@sum(a,b)\"");
}

TEST(Markup, CspHashIsBase64OfTheDigest) {
  EXPECT_EQ(csp_hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

}  // namespace
}  // namespace lra::report
