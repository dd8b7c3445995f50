// The official layout of Pathfinder data: per difficulty a folder
//   imgs/<batch>/sample_<n>.png   8-bit gray
//   metadata/<batch>.npy          a row of eleven fields per image
// The archive's .npy files are plain text (one line per image, fields separated by one blank); the
// public generator writes NumPy arrays of strings. Both are read; text is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tasks/pathfinder/geometry.h"

namespace lra::tasks {

inline constexpr std::array<std::string_view, 3> kDifficultyFolders = {
    "curv_baseline", "curv_contour_length_9", "curv_contour_length_14"};

struct PathfinderRecord {
  std::string line;  // all eleven fields, separated by blanks
  std::string path;  // "imgs/0/sample_17.png"
  int label = 0;
};

// One line. Throws lra::Error at `where` unless there are eleven fields, the first two name a file
// below imgs/ and the fourth is 0 or 1.
PathfinderRecord parse_pathfinder_record(const std::string& line, const std::string& where);

// A metadata file of either kind. Throws lra::Error that names file and line or byte.
std::vector<PathfinderRecord> parse_pathfinder_metadata(std::span<const std::byte> file,
                                                        const std::string& name);

// All metadata below `folder`: files in the order of their numbers, rows in the order of the file.
// Throws lra::Error when there are none, one image is named twice, or a file has over 64 MiB.
std::vector<PathfinderRecord> read_pathfinder_metadata(const std::string& folder);

// Number of images below `folder`/imgs, named in metadata or not.
int64_t count_pathfinder_images(const std::string& folder);

// Ends the `problem` of an image whose file is empty: the archive has one.
inline constexpr const char* kEmptyPathfinderImage = ": empty file";

// One image of the layout; if its file is empty or damaged, no pixels and the reason. Throws
// lra::Error if there is no such file or the image has another size.
struct PathfinderPixels {
  std::vector<uint8_t> pixels;
  Hash128 hash;  // of the file
  std::string problem;
};
PathfinderPixels read_pathfinder_image(const std::string& path, int size);

// The line that the released generator would write for image `index` of a dataset.
std::string pathfinder_line(const PathfinderSettings& settings, int64_t index, int label,
                            int margin);

}  // namespace lra::tasks
