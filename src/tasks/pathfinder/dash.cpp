#include "tasks/pathfinder/dash.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <span>

#include "base/error.h"

namespace lra::tasks {
namespace {

constexpr double kLobes = 3;

double sinc(double x) {
  if (x == 0) return 1;
  return std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

// Rounds to the nearest integer; halves go toward zero.
int round_toward_zero(double value) {
  const int size = static_cast<int>(std::ceil(std::abs(value) - 0.5));
  return value < 0 ? -size : size;
}

// Bresenham, both ends included; the error starts at 2 minor - major.
std::vector<Point> thin_line(Point end) {
  const int dy = std::abs(end.y), dx = std::abs(end.x);
  const Point down{end.y < 0 ? -1 : 1, 0}, right{0, end.x < 0 ? -1 : 1};
  const bool steep = dy >= dx;
  const int major = steep ? dy : dx, minor = steep ? dx : dy;
  std::vector<Point> pixels;
  Point at;
  int error = 2 * minor - major;
  for (int i = 0; i <= major; ++i) {
    pixels.push_back(at);
    if (error >= 0) {
      at = at + (steep ? right : down);
      error -= 2 * major;
    }
    error += 2 * minor;
    at = at + (steep ? down : right);
  }
  return pixels;
}

// The quadrilateral around the line, filled row by row between its outermost crossings.
std::vector<Point> thick_line(Point end, int width) {
  const double length = std::hypot(end.y, end.x);
  const int wide = width / 2, narrow = (width - 1) / 2;  // (width - 1) / 2 rounded up and down
  const auto part = [&](int amount, int delta) {
    return round_toward_zero(amount * delta / length);
  };
  const Point one{part(wide, end.x), -part(narrow, end.y)};
  const Point other{-part(narrow, end.x), part(wide, end.y)};
  const Point corners[4] = {one, end + one, end + other, other};
  int top = corners[0].y, bottom = corners[0].y;
  for (const Point corner : corners) {
    top = std::min(top, corner.y);
    bottom = std::max(bottom, corner.y);
  }
  std::vector<Point> pixels;
  for (int y = top; y <= bottom; ++y) {
    double left = 1e9, right = -1e9;
    for (int i = 0; i < 4; ++i) {
      const Point a = corners[i], b = corners[(i + 1) % 4];
      if (y < std::min(a.y, b.y) || y > std::max(a.y, b.y)) continue;
      for (const Point p : {a, b}) {
        if (p.y != y) continue;
        left = std::min<double>(left, p.x);
        right = std::max<double>(right, p.x);
      }
      if (a.y == b.y) continue;
      const double x = a.x + static_cast<double>(y - a.y) * (b.x - a.x) / (b.y - a.y);
      left = std::min(left, x);
      right = std::max(right, x);
    }
    const int last = static_cast<int>(std::ceil(right - 0.5));
    for (int x = static_cast<int>(std::floor(left + 0.5)); x <= last; ++x) pixels.push_back({y, x});
  }
  return pixels;
}

// The library's 8-bit arithmetic: weights with 22 binary digits, the result rounded and clipped.
uint8_t weighted_sum(std::span<const double> weights, const uint8_t* samples) {
  constexpr int kDigits = 22;
  int64_t sum = int64_t{1} << (kDigits - 1);
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += std::llround(std::ldexp(weights[i], kDigits)) * samples[i];
  }
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kDigits, 0, 255));
}

// The same in floating point: no rounding, no clipping.
float weighted_sum(std::span<const double> weights, const float* samples) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * samples[i];
  return static_cast<float>(sum);
}

// One pass of the filter. `input` is rows of from samples; the result is transposed.
template <typename T>
std::vector<T> reduce_rows(const Reduction& reduction, const std::vector<T>& input, int rows) {
  const int from = static_cast<int>(input.size()) / rows;
  std::vector<T> result;
  for (int output = 0; output < reduction.size(); ++output) {
    const Reduction::Taps& taps = reduction.taps(output);
    for (int row = 0; row < rows; ++row) {
      result.push_back(
          weighted_sum(taps.weights, &input[static_cast<size_t>(row * from + taps.first)]));
    }
  }
  return result;
}

}  // namespace

std::vector<Point> line_pixels(Point end, int width) {
  LRA_CHECK_GE(width, 1);
  std::vector<Point> pixels =
      width == 1 || end == Point{} ? thin_line(end) : thick_line(end, width);
  std::sort(pixels.begin(), pixels.end());
  return pixels;
}

Reduction::Reduction(int from, int to) : taps_(static_cast<size_t>(to)) {
  const double scale = static_cast<double>(from) / to, reach = kLobes * scale;
  for (int output = 0; output < to; ++output) {
    Taps& taps = taps_[static_cast<size_t>(output)];
    const double centre = (output + 0.5) * scale;
    taps.first = std::max(0, static_cast<int>(centre - reach + 0.5));
    const int end = std::min(from, static_cast<int>(centre + reach + 0.5));
    double sum = 0;
    for (int i = taps.first; i < end; ++i) {
      const double u = (i - centre + 0.5) / scale;
      const double weight = -kLobes <= u && u < kLobes ? sinc(u) * sinc(u / kLobes) : 0;
      taps.weights.push_back(weight);
      sum += weight;
    }
    for (double& weight : taps.weights) weight /= sum;
  }
}

Dash draw_dash(const DashStyle& style, Point end) {
  const int half = style.half(), side = 2 * half + 1;
  const int fine_half = kFineScale * half, fine_side = 2 * fine_half + 1;
  const auto fine_cells = static_cast<size_t>(fine_side) * static_cast<size_t>(fine_side);
  std::vector<float> line(fine_cells);
  std::vector<uint8_t> wide(fine_cells);
  const int reach = style.margin * kFineScale;
  const auto index = [&](Point p) {
    return static_cast<size_t>((p.y + fine_half) * fine_side + p.x + fine_half);
  };
  for (const Point p : line_pixels(end, style.line_width)) {
    line[index(p)] = 1;
    for (int y = -reach; y <= reach; ++y) {
      for (int x = -reach; x <= reach; ++x) {
        const Point at = p + Point{y, x};
        if (y * y + x * x > reach * reach) continue;
        if (std::max(std::abs(at.y), std::abs(at.x)) <= fine_half) wide[index(at)] = 255;
      }
    }
  }
  const Reduction reduction(fine_side, side);
  Dash dash;
  dash.half = half;
  dash.picture = reduce_rows(reduction, reduce_rows(reduction, line, fine_side), side);
  const std::vector<uint8_t> mask =
      reduce_rows(reduction, reduce_rows(reduction, wide, fine_side), side);
  for (int y = -half; y <= half; ++y) {
    for (int x = -half; x <= half; ++x) {
      const uint8_t value = mask[static_cast<size_t>((y + half) * side + x + half)];
      if (value > 0) dash.cells.push_back({.at = {y, x}, .occupied = value});
    }
  }
  return dash;
}

Displacement displacement(double angle, double distance) {
  return {.dy = distance * std::sin(angle), .dx = distance * std::cos(angle)};
}

Point round_up(Point from, Displacement by) {
  return {static_cast<int>(std::ceil(from.y + by.dy)), static_cast<int>(std::ceil(from.x + by.dx))};
}

Point round_nearest(Point from, Displacement by) {
  return {static_cast<int>(std::nearbyint(from.y + by.dy)),
          static_cast<int>(std::nearbyint(from.x + by.dx))};
}

Point fine_end(const DashStyle& style, double angle) {
  const Point centre{kFineScale * style.half(), kFineScale * style.half()};
  return round_up(centre, displacement(angle, kFineScale * style.length)) - centre;
}

void add_disc(const Reduction& reduction, Point centre, double radius, std::vector<float>& image) {
  const int size = reduction.size(), fine_size = kFineScale * size;
  const int reach = static_cast<int>(radius) + static_cast<int>(kLobes) + 2;
  const auto clip = [&](int value) { return std::clamp(value, 0, size - 1); };
  const Point low{clip(centre.y - reach), clip(centre.x - reach)};
  const Point high{clip(centre.y + reach), clip(centre.x + reach)};
  const int columns = high.x - low.x + 1;
  const Point middle{kFineScale * centre.y, kFineScale * centre.x};
  const double fine_radius = kFineScale * radius;
  // Rows first, of which only those that the disc touches hold anything.
  const int first = std::max(0, static_cast<int>(middle.y - fine_radius));
  const int end = std::min(fine_size, static_cast<int>(middle.y + fine_radius) + 1);
  std::vector<float> reduced(static_cast<size_t>(fine_size) * static_cast<size_t>(columns));
  for (int y = first; y < end; ++y) {
    for (int x = low.x; x <= high.x; ++x) {
      const Reduction::Taps& taps = reduction.taps(x);
      double sum = 0;
      for (size_t i = 0; i < taps.weights.size(); ++i) {
        const double dy = y - middle.y, dx = taps.first + static_cast<int>(i) - middle.x;
        if (dy * dy + dx * dx <= fine_radius * fine_radius) sum += taps.weights[i];
      }
      reduced[static_cast<size_t>(y * columns + x - low.x)] = static_cast<float>(sum);
    }
  }
  for (int y = low.y; y <= high.y; ++y) {
    const Reduction::Taps& taps = reduction.taps(y);
    for (int x = low.x; x <= high.x; ++x) {
      double sum = 0;
      for (size_t i = 0; i < taps.weights.size(); ++i) {
        const int row = taps.first + static_cast<int>(i);
        sum += taps.weights[i] * reduced[static_cast<size_t>(row * columns + x - low.x)];
      }
      float& pixel = image[static_cast<size_t>(y * size + x)];
      pixel = std::max(pixel, static_cast<float>(sum));
    }
  }
}

}  // namespace lra::tasks
