// Which pixels of a Pathfinder image are taken, and by how much.
//
// Values are 0 .. 255, as the released generator's masks are before it divides by 255, so its
// thresholds are exact here: a new dash may touch what is there while the sum stays below 1.8, and
// pixels above 0.3 are not free. Changes since the last commit() can be taken back.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/pathfinder_dash.h"

namespace lra::tasks {

class Occupancy {
 public:
  // All free but a frame of `padding` pixels.
  Occupancy(int size, int padding);

  bool contains(Point p) const { return p.y >= 0 && p.x >= 0 && p.y < size_ && p.x < size_; }
  // The largest value at `centre` + one of `disc`; pixels outside do not count.
  int largest(Point centre, const std::vector<Point>& disc) const;
  bool has_room(const Dash& dash, Point start) const;
  void add(const Dash& dash, Point start);
  void commit() { pending_.clear(); }
  // Back to the last commit().
  void roll_back();

  // Finds the pixels p such that no p + (one of `kernel`) is taken; pixels outside do not count.
  void find_free(const std::vector<Point>& kernel);
  int64_t num_free() const { return num_free_; }
  // The i-th of them, row by row.
  Point free_pixel(int64_t i) const;
  // Pixels that are not taken themselves.
  int64_t num_untaken() const;

 private:
  struct Change {
    size_t index;
    uint8_t before;
  };
  size_t index(Point p) const { return static_cast<size_t>(p.y * size_ + p.x); }
  void set(size_t index, uint8_t value);

  int size_, words_;  // pixels per side, 64-bit words per row of the bitmaps
  std::vector<uint8_t> values_;
  std::vector<uint64_t> taken_, free_;
  std::vector<uint64_t> row_;  // scratch
  std::vector<Change> pending_;
  int64_t num_free_ = 0;
};

}  // namespace lra::tasks
