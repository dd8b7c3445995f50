#include "base/command_text.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace lra {
namespace {

// Words that a shell reads from a line, one per line.
std::string words_of(const std::string& line) {
  FILE* shell = ::popen(("printf '%s\\n' " + line).c_str(), "r");
  std::string out;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) out += static_cast<char>(c);
  ::pclose(shell);
  return out;
}

TEST(ShellWord, IsOneWordToAShell) {
  for (const char* word : {"runs/a", "my run", "it's", "$HOME", "a;b", "", "*", "`x`", "größe",
                           "a\"b", "\\", "~", "#x", "a&b", "--out=x y"}) {
    EXPECT_EQ(words_of(shell_word(word)), std::string(word) + "\n");
  }
  EXPECT_EQ(shell_word("runs/a-b_c.d=e:f,g+h@i%j"), "runs/a-b_c.d=e:f,g+h@i%j");
}

TEST(CommandText, CallsTheProgramByItsNameFromATest) {
  EXPECT_EQ(command_text({"train", "--resume", "my runs/x"}), "lra train --resume 'my runs/x'");
}

}  // namespace
}  // namespace lra
