// Pathfinder images for people, and datasets back into their official layout.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.h"
#include "tasks/pathfinder/files.h"

namespace lra::tasks {

// The side file with the metadata lines of all examples, in the order train, val, test, which the
// pixels do not contain.
inline constexpr const char* kPathfinderLinesFile = "metadata.txt";

// The lines of that file. Throws lra::Error unless there is one for each example, with its label.
std::vector<PathfinderRecord> pathfinder_records(const Dataset& dataset);

// Writes imgs/, metadata/ as text and splits.txt into the new folder `out`. Throws lra::Error when
// it exists or an example is not of size x size.
void export_pathfinder(const Dataset& dataset, int size, const std::string& out);

// An image for a terminal: at most 64 columns of half blocks, a line for every two rows, lit if a
// pixel has 96 or more.
std::string pathfinder_picture(std::span<const uint8_t> pixels, int size);

}  // namespace lra::tasks
