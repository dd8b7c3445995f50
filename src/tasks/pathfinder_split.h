// Which images of a Pathfinder dataset are for training, validation and the test.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/pathfinder_files.h"

namespace lra::tasks {

inline constexpr std::array<const char*, 3> kPathfinderSplits = {"train", "val", "test"};
// Stands beside imgs and metadata in what we export.
inline constexpr const char* kSplitsFile = "splits.txt";

// Indices into the official order (batches by number, rows as in the metadata), ascending.
using Membership = std::array<std::vector<int64_t>, 3>;

// 80, 10 and 10 percent; the tenths are rounded down.
std::array<int64_t, 3> tenths(int64_t count);

// A permutation keyed by the seed, cut into parts of these sizes.
Membership draw_membership(const std::array<int64_t, 3>& sizes, int64_t split_seed);

// Of the images of each split, in hex: the name of a split.
std::string hash_of(const Membership& members);

// Reads splits.txt: a line "imgs/0/sample_0.png train" per record, in any order. Throws lra::Error
// that names the line for an unknown or repeated image or split, and for images left out.
Membership read_membership(const std::string& path, const std::vector<PathfinderRecord>& records);

}  // namespace lra::tasks
