// PNG images, as gray and in color. The checksums of the chunks are put right first, as an
// attacker would. Covers: src/data/png_image.cpp
#include <png.h>
#include <zlib.h>

#include <cstring>

#include "data/png_image.h"
#include "fuzz_target.h"

namespace {

constexpr size_t kSignature = 8, kLengthAndType = 8, kChecksum = 4;

uint32_t read_big_endian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

void write_big_endian(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

void mend_checksums(std::vector<uint8_t>& file) {
  size_t at = kSignature;
  while (file.size() >= at + kLengthAndType + kChecksum) {
    const size_t length = read_big_endian(&file[at]);
    if (length > file.size() - at - kLengthAndType - kChecksum) return;
    const auto covered = static_cast<uInt>(length + 4);
    write_big_endian(&file[at + kLengthAndType + length],
                     static_cast<uint32_t>(::crc32(0, &file[at + 4], covered)));
    at += kLengthAndType + length + kChecksum;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMaxSide = 64;
  std::vector<uint8_t> file(data, data + size);
  mend_checksums(file);
  lra::GrayImage image;
  if (!lra::fuzz::accepts([&] {
        image = lra::decode_png(std::as_bytes(std::span(file)), "input.png", kMaxSide);
      })) {
    return 0;
  }
  const lra::ColourImage colours =
      lra::decode_png_colours(std::as_bytes(std::span(file)), "input.png", kMaxSide);
  LRA_CHECK_EQ(colours.pixels.size(), 3 * image.pixels.size());
  LRA_CHECK(image.width <= kMaxSide && image.height <= kMaxSide);
  const std::string in_colour = lra::encode_png(colours);
  LRA_CHECK(
      lra::decode_png_colours(std::as_bytes(std::span(in_colour)), "written", kMaxSide).pixels ==
      colours.pixels);
  const std::string written = lra::encode_png(image);
  const lra::GrayImage again =
      lra::decode_png(std::as_bytes(std::span(written)), "written", kMaxSide);
  LRA_CHECK(again.width == image.width && again.pixels == image.pixels);
  return 0;
}
