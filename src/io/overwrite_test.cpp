#include "io/overwrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/scratch_folder.h"

namespace lra {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OverwriteTest : public ::testing::Test {
 protected:
  // The refusal to write a picture over a file with this content; empty if there is none.
  std::string refusal(const std::string& content) const {
    std::ofstream(scratch_.file("old")) << content;
    try {
      refuse_to_overwrite(scratch_.file("old"), png_output(), "--png");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  ScratchFolder scratch_;
};

TEST_F(OverwriteTest, ReplacesAFileOfItsKindAnEmptyOneAndNone) {
  EXPECT_EQ(refusal("\x89PNG\r\n\x1a\n rest"), "");
  EXPECT_EQ(refusal(""), "");
  EXPECT_NO_THROW(refuse_to_overwrite(scratch_.file("none"), png_output(), "--png"));
}

TEST_F(OverwriteTest, RefusesAFileOfAnotherKindInOneLine) {
  for (const char* content : {"{\n  \"schema\": 1", "x", "PNG", "\x89PN"}) {
    EXPECT_THAT(refusal(content),
                AllOf(HasSubstr("old: exists and is not a PNG picture"), HasSubstr("--png")));
  }
}

// A mark may come later: a record and a report are both JSON.
TEST_F(OverwriteTest, LooksForEveryMarkInTheBeginning) {
  const OutputKind kind{.name = "a report", .marks = {"{", "\"title\""}};
  std::ofstream(scratch_.file("report")) << "{\n  \"schema\": 1,\n  \"title\": \"x\"}";
  EXPECT_NO_THROW(refuse_to_overwrite(scratch_.file("report"), kind, "--out"));
  std::ofstream(scratch_.file("record")) << "{\n  \"schema\": 1,\n  \"kind\": \"train\"}";
  EXPECT_THROW(refuse_to_overwrite(scratch_.file("record"), kind, "--out"), Error);
  std::ofstream(scratch_.file("far")) << "{" << std::string(5000, ' ') << "\"title\"";
  EXPECT_THROW(refuse_to_overwrite(scratch_.file("far"), kind, "--out"), Error);
}

// The first byte of a safetensors file is that of a length, which may be a space.
TEST_F(OverwriteTest, KnowsABinaryFileWhoseFirstByteIsASpace) {
  const OutputKind kind{.name = "a result of a mixer", .marks = {"", "\"mixer\""}};
  std::ofstream(scratch_.file("result")) << " \x03{\"__metadata__\":{\"mixer\":\"mamba\"}}";
  EXPECT_NO_THROW(refuse_to_overwrite(scratch_.file("result"), kind, "--out"));
}

}  // namespace
}  // namespace lra
