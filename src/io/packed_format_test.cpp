#include "io/packed_format.h"

#include <gtest/gtest.h>

namespace lra {
namespace {

using namespace std::string_view_literals;

TEST(PackedFormat, IsKnownByAllThatItFixesAtTheBeginning) {
  EXPECT_EQ(packed_format("\x1F\x8B\x08\0"sv), PackedFormat::kGzip);
  EXPECT_EQ(packed_format("BZh91AY&SY...."sv), PackedFormat::kBzip2);
  EXPECT_EQ(packed_format("BZh1\x17\x72\x45\x38\x50\x90\0\0\0\0"sv), PackedFormat::kBzip2);
  EXPECT_EQ(packed_format("\xFD"
                          "7zXZ\0\0\4"sv),
            PackedFormat::kXz);
  EXPECT_EQ(packed_format("\x28\xB5\x2F\xFD$"sv), PackedFormat::kZstd);
  EXPECT_EQ(packed_format("PK\3\4\x14"sv), PackedFormat::kZip);
}

TEST(PackedFormat, IsNoneForOtherFilesWithSuchABeginning) {
  for (const std::string_view first :
       {"BZhang wrote this review"sv, "BZh9 is a room"sv, "BZh"sv, "\x1F\x8B\x02 words"sv,
        "\x1F\x8B"sv, "PKs of this film"sv, "PK"sv, "\x28\xB5 micro"sv, ""sv}) {
    EXPECT_EQ(packed_format(first), PackedFormat::kNone) << first;
  }
}

}  // namespace
}  // namespace lra
