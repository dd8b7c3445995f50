// Settings of the Pathfinder generator per image size, and all that can be computed before the
// first image is drawn.
//
// The settings are those of the released archive: lengths, thickness, margins and continuity stand
// in its metadata; the rest in the docstrings of its reader or measured on its images. A dash that
// continues a contour starts at one of a few dozen pixels around a pivot and points back at it, so
// there is only a small table of dashes, turns and steps: growing a contour is looking things up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/pathfinder/occupancy.h"

namespace lra::tasks {

inline constexpr std::array<std::string_view, 3> kDifficulties = {"easy", "intermediate", "hard"};

struct PathfinderSettings {
  int size = 32;       // 32, 64, 128 or 256 pixels
  int difficulty = 2;  // index into kDifficulties

  // Lengths in dashes.
  int contour_length() const { return std::array{6, 9, 14}[static_cast<size_t>(difficulty)]; }
  int distractor_length() const { return contour_length() / 3; }
};

struct PathfinderGeometry {
  int size;
  int dash_length;             // pixels
  double thickness;            // pixels
  std::array<int, 2> margins;  // pixels; one of the two per image
  double continuity;           // turns of more than 90 degrees / continuity are impossible
  int padding;                 // pixels along the border that stay free
  int seed_distance;           // pixels between the first dashes of the two target contours
  double marker_radius;        // pixels
  int num_distractors;         // tried; fewer find room
  double target_contrast;      // of the targets, where the distractors have 1
};

// Throws lra::Error for a size other than 32, 64, 128 and 256.
const PathfinderGeometry& pathfinder_geometry(int size);

// Tables for one margin of one size.
class PathfinderTables {
 public:
  PathfinderTables(const PathfinderGeometry& geometry, int margin);

  // A dash in all that is made of it.
  struct Shape {
    Dash dash;
    Footprint footprint;
  };
  // The first dash of a contour.
  struct Seed {
    int shape = 0;
    Displacement head, pivot;   // from its start; from its head
    std::vector<Point> kernel;  // pixels that must be free around a position; empty: no seed
    // Start positions of the first target contour: this many rows and columns from `place` on.
    Point place;
    int rows = 0, columns = 0;
  };
  // A start of the next dash, relative to the pivot; the dash points back at the pivot.
  struct Candidate {
    Point at;
    int shape = 0;
    double angle = 0;
  };
  // A candidate that a direction can turn to.
  struct Turn {
    int candidate = 0;
    int offset = 0;       // in an Occupancy, from the pivot
    uint32_t weight = 0;  // cos^2(continuity * turn) in units of 1 / kWhole, at least 1
  };
  // An angle that a dash may have.
  struct Direction {
    Displacement advance;     // from one pivot to the next
    std::vector<Turn> turns;  // in the order of the candidates
  };

  static constexpr int kNumDegrees = 360;
  // Whole numbers, so that a choice among weights is the same on every machine. Together with an
  // occupancy of 0 .. 255 the weights of all turns of a direction stay below 2^32.
  static constexpr uint32_t kWhole = 1 << 20;

  int margin = 0;
  std::vector<Shape> shapes;
  std::vector<Seed> seeds;            // kNumDegrees: -180 .. 179
  std::vector<Candidate> candidates;  // sorted by row, column
  std::vector<Direction> directions;  // kNumDegrees, then one per candidate

 private:
  int shape_for(const PathfinderGeometry& geometry, double angle);
  void add_seeds(const PathfinderGeometry& geometry);
  static void set_places(const PathfinderGeometry& geometry, Seed& seed);
  void add_candidates(const PathfinderGeometry& geometry);
  void add_direction(const PathfinderGeometry& geometry, double angle);

  std::vector<Point> ends_;  // on the fine grid, of each shape
};

}  // namespace lra::tasks
