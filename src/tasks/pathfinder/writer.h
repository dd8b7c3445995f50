// Writes the images of Pathfinder data into a prepared dataset, on all cores, and resumes where an
// interrupted run stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tasks/pathfinder/split.h"

namespace lra {
class Progress;
}

namespace lra::tasks {

// One image on its way into a dataset.
struct NewExample {
  int label = 0;
  std::vector<uint8_t> pixels;
  std::string line;     // of metadata
  std::string source;   // for the hash of what was read
  std::string problem;  // not empty: left out, and why
};

// Writes the three splits, in the order of `members`, and their metadata lines. `produce` gives the
// image of an index and is called on any thread; its result must not depend on anything that the
// writer's resume key leaves out. Returns the hash of all sources. Throws when a stop was
// requested.
std::string write_splits(const Membership& members,
                         const std::function<NewExample(int64_t)>& produce, DatasetWriter& writer,
                         Progress& progress);

}  // namespace lra::tasks
