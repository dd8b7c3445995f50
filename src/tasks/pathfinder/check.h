// Facts of `lra data check` that only Pathfinder data has.
#pragma once

#include <map>
#include <string>

#include "tasks/pathfinder/geometry.h"
#include "tasks/task.h"

namespace lra::tasks {

// Begins the note in a manifest on an image that an import left out: "skipped from train: ...".
inline constexpr const char* kPathfinderSkipped = "skipped from ";

// The sizes of the splits: what was asked for when the data were generated, else the tenths of
// `num_images`; less the images left out.
std::map<std::string, int64_t> expected_pathfinder_sizes(const Manifest& manifest,
                                                         int64_t num_images);

// Number of images that an import left out, and one of them. Not ok when files are damaged
// otherwise than by being empty, as one of the archive is, or more than a few are.
checks::Fact skipped_images_fact(const Manifest& manifest);

// Draws up to 64 images per split of a generated dataset again; not ok when one differs.
checks::Fact redrawn_images_fact(const Dataset& dataset, const PathfinderSettings& settings);

}  // namespace lra::tasks
