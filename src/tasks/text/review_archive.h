// Reads the reviews out of a tar archive, entry by entry, with libarchive.
#pragma once

#include <string>
#include <vector>

#include "tasks/text/review_names.h"

namespace lra {
class Progress;
}

namespace lra::tasks {

struct Review {
  ReviewKey key;
  std::string text;
};

// Reviews in the order of the archive. Throws lra::Error like open_reviews.
std::vector<Review> read_review_archive(const std::string& path, Progress& progress);

}  // namespace lra::tasks
