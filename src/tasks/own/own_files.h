// The files that an import of own data reads.
#pragma once

#include <string>
#include <vector>

namespace lra::tasks {

// The sources themselves, and the readable files in those that are folders. Throws lra::Error for
// an unknown ending, a folder without files, and sets of shards, such as train-00000-of-00003.csv,
// of which some are missing.
std::vector<std::string> own_files(const std::vector<std::string>& sources);

}  // namespace lra::tasks
