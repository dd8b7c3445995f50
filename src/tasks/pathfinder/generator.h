// Draws Pathfinder images (Linsley et al. 2018, as used by Tay et al. 2021): two dashed contours
// and a number of shorter distractors; discs mark two ends, of one contour (label 1) or of two
// (label 0).
//
// Image i is a function of (seed, size, difficulty, i); the released generator's random numbers
// were not recorded, so its very images cannot be drawn again.
//
// The statistics are those of the released generator (pathfinder_generator_test.cpp); what makes it
// fast is in pathfinder_geometry.h and occupancy.h. A contour that fails is begun again exactly as
// there: no attempt is spared that could have been accepted.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/pathfinder/geometry.h"

namespace lra::tasks {

struct PathfinderImage {
  std::vector<uint8_t> pixels;  // size x size, row by row
  int label = 0;                // 1: the marked ends belong to one contour
  int margin = 0;
  std::array<Point, 2> markers;
  int num_distractors = 0;   // that found room
  int64_t num_attempts = 0;  // target pairs begun until one succeeded
};

// Thread safe; the tables take less than a megabyte and a few milliseconds.
class PathfinderGenerator {
 public:
  // Throws lra::Error for a size that is not one of the released ones.
  PathfinderGenerator(const PathfinderSettings& settings, uint64_t seed);
  // index < 2^32.
  PathfinderImage draw(int64_t index) const;

 private:
  PathfinderSettings settings_;
  PathfinderGeometry geometry_;
  uint64_t seed_;
  std::vector<PathfinderTables> tables_;  // per margin
  Reduction reduction_;
};

}  // namespace lra::tasks
