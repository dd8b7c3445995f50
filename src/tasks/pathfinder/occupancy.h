// Occupied pixels of a Pathfinder image, and their degree of occupancy.
//
// Values are 0 .. 255, as the released generator's masks are before it divides by 255, so its
// thresholds are exact here: a new dash may touch others while the sum stays below 1.8, and pixels
// above 0.3 are not free. The values are stored with their dilation by the margin, kept up to date
// dash by dash (the dilation of a maximum is the maximum of the dilations), so that reading it is
// one load. Changes since the last commit() can be undone.
//
// Rows have a border on both sides, so that dashes are added without clipping. The border is never
// read: a dash that reaches across the blocked frame collides with the frame.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/pathfinder/dash.h"

namespace lra::tasks {

// The change that a dash makes to an Occupancy of one size and margin.
struct Footprint {
  static constexpr int kWidth = 32;  // bytes per row
  // A collision where the pixel at `offset` from the start has at least this value.
  struct Core {
    int offset = 0;
    uint8_t least = 0;
  };

  Point first;   // of the rows, relative to the start
  int rows = 0;  // of kWidth values each
  std::vector<uint8_t> values, dilated;
  std::vector<Core> core;
};

class Occupancy {
 public:
  // All free but a frame of `padding` >= 1 pixels. `margin` is the radius of the dilation.
  Occupancy(int size, int padding, int margin);

  // Distance of vertical neighbors in the maps, in pixels.
  static constexpr int stride(int size) { return size + 2 * kBorder; }
  static Footprint footprint(const Dash& dash, int margin, int size);

  bool contains(Point p) const { return p.y >= 0 && p.x >= 0 && p.y < size_ && p.x < size_; }
  uint8_t value(Point p) const { return values_.now[index(p)]; }
  // The largest value within the margin of `p`, and its neighbors at the distance stride(); 255
  // outside the image, up to kBorder pixels from it.
  const uint8_t* dilated(Point p) const { return &dilated_.now[index(p)]; }
  bool has_room(const Footprint& dash, Point start) const;
  // `start` must be in the image.
  void add(const Footprint& dash, Point start);
  void commit();
  // Back to the last commit().
  void roll_back();

  // Finds the pixels p such that no p + (one of `kernel`) is taken; pixels outside do not count.
  // Everything must have been committed.
  void find_free(const std::vector<Point>& kernel);
  int64_t num_free() const { return num_free_; }
  // The i-th of them, row by row.
  Point free_pixel(int64_t i) const;
  // Pixels that are not taken themselves, at the last commit().
  int64_t num_untaken() const;

  static constexpr int kBorder = 20;

 private:
  struct Map {
    std::vector<uint8_t> now, committed;
  };
  size_t index(Point p) const {
    return static_cast<size_t>((p.y + kBorder) * stride(size_) + p.x + kBorder);
  }
  void mark_taken(int row);

  int size_, words_;  // pixels per side, 64-bit words per row of the bitmaps
  Map values_, dilated_;
  std::vector<uint64_t> taken_, free_;
  std::vector<uint64_t> row_;         // scratch
  int first_changed_, last_changed_;  // rows since the last commit()
  int64_t num_free_ = 0;
};

}  // namespace lra::tasks
