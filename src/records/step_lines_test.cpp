#include "records/step_lines.h"

#include <gtest/gtest.h>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

std::string until(int64_t step, const std::string& text) {
  return kept_lines(text,
                    [&](std::string_view line) { return is_line_until_step(line, step, "m"); });
}

TEST(StepLines, KeepsWholeLinesUpToTheStep) {
  const std::string text = "{\"step\": 1}\n{\"step\": 3}\n{\"step\": 2, \"loss\": \"nan\"}\n";
  EXPECT_EQ(until(2, text), "{\"step\": 1}\n{\"step\": 2, \"loss\": \"nan\"}\n");
  EXPECT_EQ(until(0, text), "");
  EXPECT_EQ(until(3, text), text);
}

TEST(StepLines, DropsWhatACrashCutShort) {
  EXPECT_EQ(until(5, "{\"step\": 1}\n{\"st\n[1]\n{\"step\": \"x\"}\n{\"step\": 1}"),
            "{\"step\": 1}\n");
}

// Lines in the program's own spelling are read without a parser.
TEST(StepLines, KeepsLinesOfTheProgramByTheirHeads) {
  const std::string train = R"({"step":7,"kind":"train","loss":0.5})"
                            "\n";
  const std::string test = R"({"step":7,"kind":"test","loss":0.5})"
                           "\n";
  EXPECT_EQ(until(7, train + test), train);
  EXPECT_EQ(until(6, train + test), "");
  EXPECT_EQ(until(7, R"({"step":7,"kind":"tr{"step":8,"kind":"train","loss":0.5})"
                     "\n" +
                         train),
            train)
      << "a line that ran into another";
  EXPECT_EQ(until(7, R"({"step":7,"kind":"train","loss":0)"
                     "\n" +
                         train),
            train);
  EXPECT_EQ(until(7, R"({"step":99999999999999999999,"kind":"train"})"
                     "\n" +
                         train),
            train);
}

TEST(StepLines, BeginWithStepAndKind) {
  for (const char* text :
       {R"({"step":7,"kind":"val","loss":0.5})", R"({"kind": "val", "step": 7})"}) {
    EXPECT_EQ(step_line_of(text, "m").step, 7);
    EXPECT_EQ(step_line_of(text, "m").kind, "val");
  }
  EXPECT_EQ(step_line_of("{\"step\": 1}", "m").kind, "");
}

TEST(StepLines, DropsTheTestWhichComesLast) {
  EXPECT_EQ(until(5, "{\"step\": 5, \"kind\": \"val\"}\n{\"step\": 2, \"kind\": \"test\"}\n"),
            "{\"step\": 5, \"kind\": \"val\"}\n");
}

TEST(StepLines, AreKeptInTheFile) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("log");
  write_file_atomically(path, "a\nb\nc");
  keep_lines(path, 100, [](std::string_view line) { return line != "a"; });
  EXPECT_EQ(read_file(path, 100), "b\n");
}

}  // namespace
}  // namespace lra
