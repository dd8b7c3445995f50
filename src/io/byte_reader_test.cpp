#include "io/byte_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/scratch_folder.h"

namespace lra {
namespace {

using testing::HasSubstr;

template <size_t N>
std::array<std::byte, N> bytes(const unsigned char (&values)[N]) {
  std::array<std::byte, N> out;
  for (size_t i = 0; i < N; ++i) out[i] = std::byte{values[i]};
  return out;
}

TEST(ByteReader, ReadsLittleEndianNumbers) {
  const auto data = bytes(
      {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x8f});
  ByteReader reader(data, "a");
  EXPECT_EQ(reader.u8("x"), 0x01);
  EXPECT_EQ(reader.u16("x"), 0x0302);
  EXPECT_EQ(reader.u32("x"), 0x07060504u);
  EXPECT_EQ(reader.u64("x"), 0x8f0e0d0c0b0a0908u);
  EXPECT_TRUE(reader.at_end());
}

TEST(ByteReader, NamesFileOffsetAndWhatIsMissing) {
  const auto data = bytes({1, 2, 3});
  ByteReader reader(data, "a.bin", 100);
  reader.u8("x");
  EXPECT_EQ(error_of([&] { reader.u32("number of images"); }),
            "a.bin:byte 101: number of images: the file ends too early, 2 bytes are left; "
            "expected 4 bytes");
}

TEST(ByteReader, AFailedReadMovesNothing) {
  const auto data = bytes({1, 2, 3});
  ByteReader reader(data, "a");
  EXPECT_THROW(reader.u64("x"), Error);
  EXPECT_EQ(reader.position(), 0u);
  EXPECT_EQ(reader.u8("x"), 1);
}

TEST(ByteReader, SurvivesCountsThatWouldWrapAround) {
  const auto data = bytes({1, 2, 3});
  ByteReader reader(data, "a");
  reader.u8("x");
  EXPECT_THROW(reader.bytes(UINT64_MAX, "x"), Error);
  EXPECT_THROW(reader.text(UINT64_MAX - 1, "x"), Error);
  EXPECT_THROW(reader.skip(3, "x"), Error);
}

TEST(ByteReader, HandsOutTextAndSpansInPlace) {
  const auto data = bytes({'a', 'b', 'c', 'd'});
  ByteReader reader(data, "a");
  EXPECT_EQ(reader.text(2, "x"), "ab");
  EXPECT_EQ(reader.bytes(1, "x").data(), data.data() + 2);
  EXPECT_EQ(reader.remaining(), 1u);
  EXPECT_THAT(error_of([&] { reader.expect_end(); }), HasSubstr("a:byte 3: 1 bytes too many"));
  reader.skip(1, "x");
  EXPECT_NO_THROW(reader.expect_end());
}

}  // namespace
}  // namespace lra
