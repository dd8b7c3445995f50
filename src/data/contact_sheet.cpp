#include "data/contact_sheet.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lra {
namespace {

constexpr int64_t kGap = 2;       // pixels between tiles and around them
constexpr uint8_t kGapGray = 96;  // neither black nor white
constexpr int64_t kMostPixels = 16000000;

[[noreturn]] void refuse(const std::string& what, const std::string& expected) {
  throw Error({.where = "contact sheet", .what = what, .expected = expected});
}

}  // namespace

int64_t image_side(const TaskShape& shape) {
  const auto side = std::llround(std::sqrt(static_cast<double>(shape.length)));
  const bool is_image = !shape.has_padding && shape.vocabulary == 256 && shape.num_towers == 1 &&
                        side * side == shape.length;
  return is_image ? side : 0;
}

GrayImage contact_sheet(const TaskShape& shape, const Split& split, int64_t first, int64_t count) {
  const int64_t side = image_side(shape), pitch = side + kGap;
  if (side == 0) {
    refuse("the examples of this task are not images", "image or one of the Pathfinder tasks");
  }
  const int64_t tiles = std::min(count, split.size() - first);
  if (first < 0 || tiles < 1) {
    refuse("there is no example " + std::to_string(first),
           "0 to " + std::to_string(split.size() - 1));
  }
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(tiles))));
  const int64_t rows = (tiles + columns - 1) / columns;
  const int64_t width = columns * pitch + kGap, height = rows * pitch + kGap;
  if (columns > kMostPixels / pitch || width * height > kMostPixels) {
    refuse(std::to_string(tiles) + " images of " + std::to_string(side) + " x " +
               std::to_string(side) + " are too many",
           "at most 16 million pixels");
  }
  GrayImage sheet{.width = static_cast<int>(width),
                  .height = static_cast<int>(height),
                  .pixels = std::vector<uint8_t>(static_cast<size_t>(width * height), kGapGray)};
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const std::span<const uint8_t> pixels = split.stored_bytes(first + tile);
    if (static_cast<int64_t>(pixels.size()) != side * side) {
      refuse("example " + std::to_string(first + tile) + " has " + std::to_string(pixels.size()) +
                 " pixels",
             std::to_string(side * side));
    }
    const int64_t top = tile / columns * pitch + kGap, left = tile % columns * pitch + kGap;
    for (int64_t y = 0; y < side; ++y) {
      std::copy_n(&pixels[static_cast<size_t>(y * side)], side,
                  &sheet.pixels[static_cast<size_t>((top + y) * width + left)]);
    }
  }
  return sheet;
}

}  // namespace lra
