// Reads the reviews out of a tar archive, entry by entry, with libarchive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/reviews.h"

namespace lra::tasks {

inline constexpr uint64_t kMaxReviewBytes = uint64_t{1} << 20;  // the longest real one has 14 kB

// In the order of the archive. Throws lra::Error as said at read_reviews.
std::vector<Review> read_review_archive(const std::string& path, Progress& progress);

}  // namespace lra::tasks
