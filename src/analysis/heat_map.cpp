#include "analysis/heat_map.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace lra::analysis {
namespace {

using Rgb = std::array<uint8_t, 3>;

constexpr int kGap = 16;  // pixels between two pictures
constexpr Rgb kWhite = {255, 255, 255}, kLine = {128, 128, 128};

struct Lch {
  double lightness, chroma, hue_degrees;
};

// Linear light of the three primaries; outside 0..1 if a screen cannot show the color.
std::array<double, 3> linear_rgb(const Lch& c) {
  const double hue = c.hue_degrees * std::numbers::pi / 180;
  const double a = c.chroma * std::cos(hue), b = c.chroma * std::sin(hue);
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(c.lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(c.lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(c.lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool exists(const Lch& c) {
  const auto rgb = linear_rgb(c);
  return std::all_of(rgb.begin(), rgb.end(), [](double x) { return x >= 0 && x <= 1; });
}

uint8_t gamma_byte(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double encoded = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(255 * encoded));
}

Rgb to_rgb(Lch c) {
  if (!exists(c)) {
    double low = 0, high = c.chroma;
    for (int i = 0; i < 20; ++i) {
      c.chroma = (low + high) / 2;
      (exists(c) ? low : high) = c.chroma;
    }
    c.chroma = low;
  }
  const auto rgb = linear_rgb(c);
  return {gamma_byte(rgb[0]), gamma_byte(rgb[1]), gamma_byte(rgb[2])};
}

// 256 steps are all that a byte can distinguish.
std::array<Rgb, 256> table_of(ColourScale scale) {
  std::array<Rgb, 256> table;
  for (int i = 0; i < 256; ++i) table[static_cast<size_t>(i)] = colour_at(scale, i / 255.0);
  return table;
}

ColourImage blank(int64_t width, int64_t height, const Rgb& colour) {
  LRA_CHECK_LE(width * height, int64_t{1} << 28);
  ColourImage image{.width = static_cast<int>(width),
                    .height = static_cast<int>(height),
                    .pixels = std::vector<uint8_t>(static_cast<size_t>(3 * width * height))};
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = colour[i % 3];
  return image;
}

void fill(ColourImage& image, int64_t left, int64_t top, int size, const Rgb& colour) {
  for (int64_t y = top; y < top + size; ++y) {
    uint8_t* to = &image.pixels[static_cast<size_t>(3 * (y * image.width + left))];
    for (int x = 0; x < size; ++x, to += 3) std::copy(colour.begin(), colour.end(), to);
  }
}

// Colors of numbers.
class Painter {
 public:
  explicit Painter(const Colours& colours) : colours_(colours), table_(table_of(colours.scale)) {}
  const Rgb& operator()(double value) const {
    const double range = colours_.high - colours_.low;
    const double place = range > 0 ? (value - colours_.low) / range : 0;
    return table_[static_cast<size_t>(std::lround(255 * std::clamp(place, 0.0, 1.0)))];
  }

 private:
  const Colours colours_;
  const std::array<Rgb, 256> table_;
};

}  // namespace

std::array<uint8_t, 3> colour_at(ColourScale scale, double place) {
  if (scale == ColourScale::kGray) {
    const auto gray = static_cast<uint8_t>(std::lround(255 * place));
    return {gray, gray, gray};
  }
  if (scale == ColourScale::kSequential) {
    // Little chroma: with more, the greens would leave what a screen shows.
    return to_rgb({.lightness = 0.15 + 0.82 * place,
                   .chroma = 0.03 + 0.065 * std::sin(std::numbers::pi * place),
                   .hue_degrees = 285 - 180 * place});
  }
  const double from_middle = 2 * place - 1;
  return to_rgb({.lightness = 0.97 - 0.55 * std::abs(from_middle),
                 .chroma = 0.14 * std::abs(from_middle),
                 .hue_degrees = from_middle < 0 ? 255.0 : 27.0});
}

ColourImage heat_map(std::span<const double> values, int64_t columns, const Colours& colours,
                     int cell) {
  LRA_CHECK(!values.empty() && columns > 0);
  const auto count = static_cast<int64_t>(values.size());
  const int64_t rows = (count + columns - 1) / columns;
  ColourImage image = blank(columns * cell, rows * cell, kLine);
  const Painter colour(colours);
  for (int64_t i = 0; i < count; ++i) {
    fill(image, i % columns * cell, i / columns * cell, cell,
         colour(values[static_cast<size_t>(i)]));
  }
  return image;
}

ColourImage tiled_heat_map(std::span<const double> values, int64_t side, int64_t step,
                           const Colours& colours) {
  const int64_t tile_size = side * side, pitch = side + 1, tiles = (side + step - 1) / step;
  LRA_CHECK_EQ(static_cast<int64_t>(values.size()), tile_size * tile_size);
  ColourImage image = blank(tiles * pitch + 1, tiles * pitch + 1, kLine);
  const Painter colour(colours);
  for (int64_t n = 0; n < tiles * tiles; ++n) {
    const int64_t left = n % tiles * pitch + 1, top = n / tiles * pitch + 1;
    const int64_t tile = n / tiles * step * side + n % tiles * step;
    for (int64_t pixel = 0; pixel < tile_size; ++pixel) {
      fill(image, left + pixel % side, top + pixel / side, 1,
           colour(values[static_cast<size_t>(tile * tile_size + pixel)]));
    }
  }
  return image;
}

ColourImage side_by_side(const ColourImage& left, const ColourImage& right) {
  LRA_CHECK_EQ(left.height, right.height);
  ColourImage image = blank(left.width + kGap + right.width, left.height, kWhite);
  for (int y = 0; y < image.height; ++y) {
    const auto row = [y](const ColourImage& from) {
      return from.pixels.begin() + std::ptrdiff_t{3} * y * from.width;
    };
    const auto to = image.pixels.begin() + std::ptrdiff_t{3} * y * image.width;
    std::copy_n(row(left), 3 * left.width, to);
    std::copy_n(row(right), 3 * right.width, to + std::ptrdiff_t{3} * (left.width + kGap));
  }
  return image;
}

}  // namespace lra::analysis
