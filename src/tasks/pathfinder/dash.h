// The pictures Pathfinder images are made of: one dash, and one marker disc.
//
// Linsley et al., Learning long-range spatial dependencies with horizontal gated recurrent units
// (NeurIPS 2018), draw at twice the resolution and reduce with a Lanczos filter. The released
// archive was made with an image library of its time, so the rules here are that library's: which
// pixels a line of a given width covers, which samples the filter takes, where it rounds.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lra::tasks {

struct Point {
  int y = 0, x = 0;
  friend Point operator+(Point a, Point b) { return {a.y + b.y, a.x + b.x}; }
  friend Point operator-(Point a, Point b) { return {a.y - b.y, a.x - b.x}; }
  auto operator<=>(const Point&) const = default;  // NOLINT(modernize-use-nullptr): not there
};

// Fine pixels per pixel and axis.
inline constexpr int kFineScale = 2;

// Pixels of a straight line from (0, 0) to `end`, `width` >= 1 pixels thick, sorted by row, column.
std::vector<Point> line_pixels(Point end, int width);

// Reduces (or keeps) a row of `from` samples to `to` samples: Lanczos with three lobes.
class Reduction {
 public:
  Reduction(int from, int to);
  // The samples first .. first + weights.size() - 1 that make one output; the weights' sum is 1.
  struct Taps {
    int first = 0;
    std::vector<double> weights;
  };
  const Taps& taps(int output) const { return taps_[static_cast<size_t>(output)]; }
  int size() const { return static_cast<int>(taps_.size()); }

 private:
  std::vector<Taps> taps_;
};

// Parameters of a dash's look.
struct DashStyle {
  int length = 0;          // pixels
  int thickness_ceil = 0;  // pixels, rounded up
  int line_width = 0;      // fine pixels
  int margin = 0;          // pixels kept free around the dash: half the gap to the next one
  // Pictures reach this far from the start of the dash.
  int half() const { return length + thickness_ceil + margin; }
};

// A dash from its start pixel to an end on the fine grid.
struct Dash {
  int half = 0;
  // (2 half + 1)^2 values, row by row, around the start; from slightly below 0 to about 1.2.
  std::vector<float> picture;
  // Pixels that it occupies, margin included, relative to the start with 1 .. 255.
  struct Cell {
    Point at;
    uint8_t occupied = 0;
  };
  std::vector<Cell> cells;
};
Dash draw_dash(const DashStyle& style, Point fine_end);

// The end of a dash along `angle` (radians; (sin, cos) is its (dy, dx)) on the fine grid.
Point fine_end(const DashStyle& style, double angle);
// `distance` along `angle` (radians).
struct Displacement {
  double dy = 0, dx = 0;
};
Displacement displacement(double angle, double distance);
// End of a displacement, each coordinate rounded up. The sum is rounded, as in the release: half a
// turn has a sine of 1e-16, which moves a small coordinate up by one and is lost in a large one.
Point round_up(Point from, Displacement by);
// The same, halves to the even neighbour.
Point round_nearest(Point from, Displacement by);

// Adds a disc of `radius` pixels at `centre` to an image of size x size by the maximum of both. The
// plateau is 1; the filter's overshoot along the edge reaches about 1.16.
void add_disc(const Reduction& reduction, Point centre, double radius, std::vector<float>& image);

}  // namespace lra::tasks
