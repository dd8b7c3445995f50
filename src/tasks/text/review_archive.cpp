#include "tasks/text/review_archive.h"

#include "base/error.h"
#include "data/tar_archive.h"
#include "data/text_lines.h"
#include "io/progress.h"
#include "tasks/text/reviews.h"

namespace lra::tasks {

std::vector<Review> read_review_archive(const std::string& path, Progress& progress) {
  // The official archive unpacks to 370 MB, 65 of them reviews with labels.
  constexpr TarArchive::Limits kLimits = {.total_bytes = int64_t{1} << 30};
  // They are sorted in memory, which also has to hold a shard of 64 MiB.
  constexpr uint64_t kMaxBytes = uint64_t{96} << 20;
  TarArchive archive(path, "aclImdb_v1.tar.gz or an archive like it", kLimits);
  uint64_t bytes = 0;
  std::vector<Review> reviews;
  while (archive.next()) {
    Review review;
    if (!archive.is_file() || !is_in_review_folder(archive.name())) continue;
    if (!parse_review_path(archive.name(), review.key))
      refuse_review_name(path + ":" + archive.name());
    review.text = document_text(archive.content(kMaxReviewBytes), path + ":" + archive.name());
    bytes += review.text.size();
    if (bytes > kMaxBytes) {
      throw Error({.where = path,
                   .what = "holds more than 96 MiB of reviews",
                   .expected = "50,000 reviews, 65 MB",
                   .advice = "unpack it and import the folder, which may be of any size"});
    }
    reviews.push_back(std::move(review));
    progress.update();
  }
  if (reviews.empty()) {
    throw Error({.where = path,
                 .what = "holds no reviews; it holds " + archive.contents(),
                 .expected = "aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt"});
  }
  return reviews;
}

}  // namespace lra::tasks
