#include "tasks/text/reviews.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "data/files.h"
#include "data/stopping.h"
#include "data/tar_archive.h"
#include "data/text_lines.h"
#include "io/atomic_file.h"
#include "io/progress.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

// Adds the reviews of one split and label.
void list_folder(const fs::path& folder, Reviews& reviews) {
  if (!is_folder(folder)) {
    const std::string split = folder.parent_path().string();
    const std::string there = is_folder(split) ? split : fs::path(split).parent_path().string();
    const std::string source = folder.parent_path().parent_path().string();
    const bool is_inside = is_folder(source + "/neg") || is_folder(source + "/pos");
    throw Error(
        {.where = folder.string(),
         .what = "no such folder; " + there + " holds " + quoted_list(data_names_in(there)),
         .expected = "aclImdb/{train,test}/{neg,pos}",
         .advice = is_inside ? "name the folder above" : "is the archive unpacked completely?"});
  }
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    throw_if_stopped();
    const std::string path = entry->path().string();
    if (is_clutter(entry->path().filename().native())) continue;
    if (!entry->is_regular_file(failed)) {
      throw Error({.where = path,
                   .what = "is a folder, a special file or a link to nothing",
                   .expected = "the text of a review",
                   .advice = "move it away"});
    }
    ReviewKey key;
    if (!parse_review_path(path, key)) refuse_review_name(path);
    const uintmax_t num_bytes = entry->file_size(failed);
    if (failed) break;
    if (num_bytes > kMaxReviewBytes) {
      throw Error({.where = path,
                   .what = "has " + thousands(static_cast<int64_t>(num_bytes)) + " bytes",
                   .expected = "at most 1 MiB",
                   .advice = "is this a review?"});
    }
    reviews.num_bytes += num_bytes;
    reviews.keys.push_back(key);
  }
  if (failed) throw io_error(folder.string(), "cannot list the folder", failed.value());
}

// `keys` are in order. Refuses a number that two reviews of one folder have.
void refuse_same_numbers(const std::string& source, const std::vector<ReviewKey>& keys) {
  for (size_t i = 1; i < keys.size(); ++i) {
    const ReviewKey &a = keys[i - 1], &b = keys[i];
    if (a.split != b.split || a.label != b.label || a.id != b.id) continue;
    throw Error({.where = source,
                 .what = review_path(a) + " and " + review_path(b) + " have the same number",
                 .expected = "one review per number and folder"});
  }
}

// Bad reviews have low ratings. Folders or labels that were swapped do not.
void refuse_swapped_labels(const std::string& source, const std::vector<ReviewKey>& keys) {
  for (int split = 0; split < 2; ++split) {
    std::array<double, 2> sums{}, counts{};
    for (const ReviewKey& key : keys) {
      if (key.split != split) continue;
      sums.at(static_cast<size_t>(key.label)) += static_cast<double>(key.rating);
      ++counts.at(static_cast<size_t>(key.label));
    }
    if (sums[0] * counts[1] <= sums[1] * counts[0]) continue;  // of the means
    const std::string name = kReviewSplits[static_cast<size_t>(split)];
    throw Error({.where = source,
                 .what = "the reviews of " + name + "/neg have higher ratings than those of " +
                         name + "/pos",
                 .expected = "ratings of 1 to 4 in neg, 7 to 10 in pos",
                 .advice = "are the two folders swapped?"});
  }
}

Reviews open_folder(const std::string& root, Progress& progress) {
  Reviews reviews;
  for (const char* split : kReviewSplits) {
    for (const char* label : kReviewLabels) list_folder(fs::path(root) / split / label, reviews);
  }
  std::sort(reviews.keys.begin(), reviews.keys.end());
  reviews.read = [root, &progress](size_t, const ReviewKey& key) {
    const std::string path = root + "/" + review_path(key);
    std::string text = document_text(read_file(path, kMaxReviewBytes), path);
    progress.update();
    return text;
  };
  return reviews;
}

// Reviews in the order of the archive.
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

}  // namespace

Reviews reviews_in_memory(std::vector<Review> found) {
  std::ranges::stable_sort(found, {}, &Review::key);
  Reviews reviews;
  for (const Review& review : found) {
    reviews.keys.push_back(review.key);
    reviews.num_bytes += review.text.size();
  }
  reviews.read = [all = std::make_shared<std::vector<Review>>(std::move(found))](
                     size_t i, const ReviewKey&) { return (*all)[i].text; };
  return reviews;
}

Reviews open_reviews(const std::string& source, Progress& progress) {
  const fs::path below = fs::path(source) / "aclImdb";
  Reviews reviews = is_folder(below)    ? open_folder(below.string(), progress)
                    : is_folder(source) ? open_folder(source, progress)
                                        : reviews_in_memory(read_review_archive(source, progress));
  if (reviews.keys.empty()) {
    throw Error({.where = source,
                 .what = "has no reviews in its four folders",
                 .expected = "aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt"});
  }
  refuse_same_numbers(source, reviews.keys);
  refuse_swapped_labels(source, reviews.keys);
  return reviews;
}

}  // namespace lra::tasks
