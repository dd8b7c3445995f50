#include "base/step_lines.h"

#include <gtest/gtest.h>

namespace lra {
namespace {

TEST(StepLines, KeepsWholeLinesUpToTheStep) {
  const std::string text = "{\"step\": 1}\n{\"step\": 3}\n{\"step\": 2, \"loss\": \"nan\"}\n";
  EXPECT_EQ(lines_until_step(text, 2, "m"), "{\"step\": 1}\n{\"step\": 2, \"loss\": \"nan\"}\n");
  EXPECT_EQ(lines_until_step(text, 0, "m"), "");
  EXPECT_EQ(lines_until_step(text, 3, "m"), text);
}

TEST(StepLines, DropsWhatACrashCutShort) {
  EXPECT_EQ(lines_until_step("{\"step\": 1}\n{\"st\n[1]\n{\"step\": \"x\"}\n{\"step\": 1}", 5, "m"),
            "{\"step\": 1}\n");
}

}  // namespace
}  // namespace lra
