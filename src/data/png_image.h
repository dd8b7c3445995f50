// PNG images in memory, through libpng: gray ones, which the Pathfinder archives hold, and pictures
// in color.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lra {

struct GrayImage {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // row by row
};

struct ColourImage {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels;  // red, green, blue of each, row by row
};

// Gray of up to 8 bits, palette and RGB images; colors become gray by the weights of ITU-R 601 as
// 16-bit fractions, the "L" of Python's imaging library. Throws lra::Error, naming `name`, for
// anything else: not a PNG, damaged, cut off, transparent, 16 bits, larger than `max_side`.
GrayImage decode_png(std::span<const std::byte> file, const std::string& name, int max_side);
// The same images; gray as three equal colors.
ColourImage decode_png_colours(std::span<const std::byte> file, const std::string& name,
                               int max_side);

// An 8-bit gray or RGB PNG. The image must not be empty.
std::string encode_png(const GrayImage& image);
std::string encode_png(const ColourImage& image);

}  // namespace lra
