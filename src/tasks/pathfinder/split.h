// The split of a Pathfinder dataset into training, validation and test images.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/manifest.h"
#include "tasks/pathfinder/files.h"

namespace lra::tasks {

// Name of the file next to imgs and metadata in an export.
inline constexpr const char* kSplitsFile = "splits.txt";

inline constexpr int64_t kUsualSplitSeed = 0;

// Indices into the official order (batches by number, rows as in the metadata), ascending.
using Membership = std::array<std::vector<int64_t>, 3>;

// 80, 10 and 10 percent; the tenths are rounded down.
std::array<int64_t, 3> tenths(int64_t count);

// A permutation keyed by the seed, cut into parts of these sizes.
Membership draw_membership(const std::array<int64_t, 3>& sizes, int64_t split_seed);

// Hash of the images of each split, in hex: the name of a split.
std::string hash_of(const Membership& members);

// Reads splits.txt: a line "imgs/0/sample_0.png train" per record, in any order. Throws lra::Error
// that names the line for an unknown or repeated image or split, and for images left out.
Membership read_membership(const std::string& path, const std::vector<PathfinderRecord>& records);

// Membership in an official folder: that of its splits.txt, or drawn if there is none. Adds to the
// manifest's settings the sizes of splits other than the usual tenths, and removes "split_seed" if
// the split is not that of the seed. Throws lra::Error like read_membership(), and if another seed
// than the usual one is asked for and splits.txt has another split.
Membership membership_of_source(const std::string& folder,
                                const std::vector<PathfinderRecord>& records, int64_t split_seed,
                                Manifest& manifest);

}  // namespace lra::tasks
