#include "tasks/reviews.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/progress.h"
#include "tasks/files.h"
#include "tasks/review_archive.h"
#include "tasks/stopping.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

struct ReviewFile {
  ReviewKey key;
  std::string path;
  uint64_t num_bytes = 0;
};

// Adds the files of one split and label.
void list_folder(const fs::path& folder, std::vector<ReviewFile>& files) {
  if (!is_folder(folder)) {
    throw Error({.where = folder.string(),
                 .what = "no such folder",
                 .expected = "aclImdb/{train,test}/{neg,pos}",
                 .advice = "is the archive unpacked completely?"});
  }
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    throw_if_stopped();
    ReviewFile file{.key = {}, .path = entry->path().string()};
    if (entry->path().filename().string().starts_with(".")) continue;  // left by file managers
    if (!entry->is_regular_file(failed) || entry->is_symlink(failed)) {
      throw Error({.where = file.path,
                   .what = "is a link, a folder or a special file",
                   .expected = "the text of a review",
                   .advice = "remove it"});
    }
    if (!parse_review_path(file.path, file.key)) {
      throw Error({.where = file.path,
                   .what = "is not the name of a review",
                   .expected = "<id>_<rating>.txt",
                   .advice = "remove it"});
    }
    file.num_bytes = entry->file_size(failed);
    files.push_back(std::move(file));
  }
  if (failed) throw io_error(folder.string(), "cannot list the folder", failed.value());
}

// Sorts, and refuses a number that two reviews of one folder have. T has a `key`.
template <typename T>
void put_in_order(const std::string& source, std::vector<T>& reviews) {
  std::sort(reviews.begin(), reviews.end(), [](const T& a, const T& b) { return a.key < b.key; });
  for (size_t i = 1; i < reviews.size(); ++i) {
    const ReviewKey &a = reviews[i - 1].key, &b = reviews[i].key;
    if (a.split != b.split || a.label != b.label || a.id != b.id) continue;
    throw Error({.where = source,
                 .what = review_path(a) + " and " + review_path(b) + " have the same number",
                 .expected = "one review per number and folder",
                 .advice = ""});
  }
}

Reviews open_folder(const fs::path& root, Progress& progress) {
  auto files = std::make_shared<std::vector<ReviewFile>>();
  for (const char* split : kReviewSplits) {
    for (const char* label : kReviewLabels) list_folder(root / split / label, *files);
  }
  put_in_order(root.string(), *files);
  Reviews reviews;
  for (const ReviewFile& file : *files) {
    reviews.keys.push_back(file.key);
    reviews.num_bytes += file.num_bytes;
  }
  reviews.text = [files, &progress](size_t i) {
    std::string text = read_file((*files)[i].path, kMaxReviewBytes);
    progress.update();
    return text;
  };
  return reviews;
}

Reviews open_archive(const std::string& source, Progress& progress) {
  auto read = std::make_shared<std::vector<Review>>(read_review_archive(source, progress));
  put_in_order(source, *read);
  Reviews reviews;
  for (const Review& review : *read) {
    reviews.keys.push_back(review.key);
    reviews.num_bytes += review.text.size();
  }
  reviews.text = [read](size_t i) { return (*read)[i].text; };
  return reviews;
}

}  // namespace

Reviews open_reviews(const std::string& source, Progress& progress) {
  const fs::path below = fs::path(source) / "aclImdb";
  Reviews reviews = is_folder(below)    ? open_folder(below, progress)
                    : is_folder(source) ? open_folder(source, progress)
                                        : open_archive(source, progress);
  if (reviews.keys.empty()) {
    throw Error({.where = source,
                 .what = "holds no reviews",
                 .expected = "aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt",
                 .advice = ""});
  }
  return reviews;
}

}  // namespace lra::tasks
