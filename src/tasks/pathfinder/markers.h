// The two marker discs of a Pathfinder image, found in its pixels, and what their distance alone
// reveals about the label.
//
// Ends of one contour are slightly closer together than ends of two, so a threshold-free table of
// distances is right in about 54 of 100 hard images (63 at 256 x 256): the shortcut that a model
// has to beat. If many images do not even show that much, labels and images have been mixed up: the
// archive holds pathfinder128 twice, and users report one copy as unlearnable.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tasks/pathfinder/geometry.h"
#include "tasks/task.h"

namespace lra::tasks {

// The centres of the two discs in an image of size x size, correct to a pixel unless they overlap.
std::array<Point, 2> find_markers(std::span<const uint8_t> pixels, int size);

// Accuracy on `test` of the label that is most frequent on `train` at that distance.
checks::Baseline marker_distance_baseline(const Split& train, const Split& test, int size);

// Tests whether labels depend on the distance, by Pearson's chi-square; not ok when at least 10,000
// images show nothing.
checks::Fact marker_distance_fact(const Split& train, int size);

}  // namespace lra::tasks
