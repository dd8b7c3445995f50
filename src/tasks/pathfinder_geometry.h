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

#include "tasks/pathfinder_dash.h"

namespace lra::tasks {

inline constexpr std::array<std::string_view, 3> kDifficulties = {"easy", "intermediate", "hard"};

struct PathfinderSettings {
  int size = 32;       // 32, 64, 128 or 256 pixels
  int difficulty = 2;  // index into kDifficulties

  // In dashes.
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

  // An angle that a dash may have: whole degrees (0 .. 359 stand for -180 .. 179) for the first one
  // of a contour, and the direction of every candidate after that.
  struct Direction {
    Point advance;  // from one pivot to the next
    std::vector<double>
        weight;  // of each candidate: cos^2(continuity * turn), 0 beyond a right angle
  };
  // The first dash of a contour.
  struct Seed {
    int dash = 0;
    Point head, pivot;          // relative to its start
    std::vector<Point> kernel;  // pixels that must be free around a position
    std::vector<Point> places;  // where the first target contour may start
  };
  // Where the next dash may start, relative to the pivot; it points back at the pivot.
  struct Candidate {
    Point at;
    int dash = 0;
    int direction = 0;  // index into directions
  };

  static constexpr int kNumDegrees = 360;

  int margin = 0;
  std::vector<Dash> dashes;
  std::vector<Direction> directions;  // kNumDegrees, then one per candidate
  std::vector<Seed> seeds;            // kNumDegrees
  std::vector<Candidate> candidates;  // sorted by row, column
  std::vector<Point> disc;            // of the margin's radius

 private:
  int dash_for(const DashStyle& style, double angle);
  void add_seeds(const PathfinderGeometry& geometry, const DashStyle& style);
  void add_candidates(const PathfinderGeometry& geometry, const DashStyle& style);

  std::vector<Point> ends_;  // on the fine grid, of each dash
};

}  // namespace lra::tasks
