#include "tasks/review_archive.h"

#include "base/progress.h"
#include "tasks/tar_archive.h"

namespace lra::tasks {

std::vector<Review> read_review_archive(const std::string& path, Progress& progress) {
  TarArchive archive(path, "aclImdb_v1.tar.gz or an archive like it");
  std::vector<Review> reviews;
  while (archive.next()) {
    Review review;
    if (!archive.is_file() || !parse_review_path(archive.name(), review.key)) continue;
    review.text = archive.content(kMaxReviewBytes);
    reviews.push_back(std::move(review));
    progress.update();
  }
  return reviews;
}

}  // namespace lra::tasks
