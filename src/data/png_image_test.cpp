#include "data/png_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra {
namespace {

using ::testing::HasSubstr;

GrayImage ramp(int width, int height) {
  GrayImage image{.width = width, .height = height, .pixels = {}};
  for (int i = 0; i < width * height; ++i) image.pixels.push_back(static_cast<uint8_t>(7 * i));
  return image;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string error_for(const std::string& file, int max_side = 64) {
  return error_of([&] { decode_png(bytes_of(file), "x.png", max_side); });
}

TEST(PngImage, DecodesWhatItEncodes) {
  for (const auto& [width, height] : {std::pair{1, 1}, {32, 32}, {5, 9}}) {
    const GrayImage image = ramp(width, height);
    const GrayImage again = decode_png(bytes_of(encode_png(image)), "x.png", 64);
    EXPECT_EQ(again.width, width);
    EXPECT_EQ(again.height, height);
    EXPECT_EQ(again.pixels, image.pixels);
  }
}

// Read as gray: the weights of ITU-R 601 tell the channels apart.
TEST(PngImage, EncodesAndDecodesColours) {
  const ColourImage image{
      .width = 2, .height = 2, .pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 10, 10}};
  const GrayImage gray = decode_png(bytes_of(encode_png(image)), "x.png", 64);
  EXPECT_EQ(gray.width, 2);
  EXPECT_EQ(gray.pixels, (std::vector<uint8_t>{76, 150, 29, 10}));
  EXPECT_EQ(decode_png_colours(bytes_of(encode_png(image)), "x.png", 64).pixels, image.pixels);
  const ColourImage of_gray = decode_png_colours(bytes_of(encode_png(ramp(2, 1))), "x.png", 64);
  EXPECT_EQ(of_gray.pixels, (std::vector<uint8_t>{0, 0, 0, 7, 7, 7}));
}

TEST(PngImage, RefusesEveryTruncation) {
  const std::string file = encode_png(ramp(8, 8));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(error_for(file.substr(0, size)), HasSubstr("x.png")) << size;
  }
}

TEST(PngImage, RefusesAChangedByteInEveryChunk) {
  const std::string file = encode_png(ramp(8, 8));
  for (size_t at = 0; at < file.size(); ++at) {
    std::string wrong = file;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x41);
    EXPECT_NE(error_for(wrong), "") << at;
  }
}

TEST(PngImage, RefusesImagesLargerThanTheLimit) {
  EXPECT_THAT(error_for(encode_png(ramp(65, 1))), HasSubstr("at most 64 x 64"));
  EXPECT_EQ(error_for(encode_png(ramp(64, 64))), "");
}

}  // namespace
}  // namespace lra
