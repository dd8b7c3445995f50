#include "tasks/reviews.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/text_format.h"
#include "tasks/files.h"
#include "tasks/review_archive.h"
#include "tasks/stopping.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kSplits = {"train", "test"};
constexpr std::array<const char*, 2> kLabels = {"neg", "pos"};

// A plain decimal number of 1 to 9 digits without leading zeros: the text is that of the number.
bool parse_number(std::string_view text, int64_t& number) {
  if (text.empty() || text.size() > 9 || (text.size() > 1 && text[0] == '0')) return false;
  if (text[0] == '-') return false;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size();
}

// Takes "/name" off the end of a path.
std::string_view take_last(std::string_view& path) {
  const size_t slash = path.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  return last;
}

bool parse_choice(std::string_view text, const std::array<const char*, 2>& choices, int& choice) {
  for (int i = 0; i < 2; ++i) {
    if (text == choices[static_cast<size_t>(i)]) {
      choice = i;
      return true;
    }
  }
  return false;
}

// Paths of one split and label, with their keys.
void list_folder(const fs::path& folder, std::vector<std::pair<ReviewKey, std::string>>& found) {
  if (!is_folder(folder)) {
    throw Error({.where = folder.string(),
                 .what = "no such folder",
                 .expected = "aclImdb/{train,test}/{neg,pos}",
                 .advice = "is the archive unpacked completely?"});
  }
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string path = entry->path().string();
    if (entry->path().filename().string().starts_with(".")) continue;  // left by file managers
    if (!entry->is_regular_file(failed) || entry->is_symlink(failed)) {
      throw Error({.where = path,
                   .what = "is a link, a folder or a special file",
                   .expected = "the text of a review",
                   .advice = "remove it"});
    }
    ReviewKey key;
    if (!parse_review_path(path, key)) {
      throw Error({.where = path,
                   .what = "is not the name of a review",
                   .expected = "<id>_<rating>.txt",
                   .advice = "remove it"});
    }
    found.emplace_back(key, path);
  }
  if (failed) throw io_error(folder.string(), "cannot list the folder", failed.value());
}

std::vector<Review> read_folder(const fs::path& root, Progress& progress) {
  std::vector<std::pair<ReviewKey, std::string>> found;
  for (const char* split : kSplits) {
    for (const char* label : kLabels) list_folder(root / split / label, found);
  }
  std::vector<Review> reviews(found.size());
  parallel_ranges(static_cast<int64_t>(found.size()), 64, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      throw_if_stopped();
      reviews[i] = {found[i].first, read_file(found[i].second, kMaxReviewBytes)};
      progress.update();
    }
  });
  return reviews;
}

// Sorts, and refuses a number that two reviews of one folder have.
void put_in_order(const std::string& source, std::vector<Review>& reviews) {
  std::sort(reviews.begin(), reviews.end(),
            [](const Review& a, const Review& b) { return a.key < b.key; });
  for (size_t i = 1; i < reviews.size(); ++i) {
    const ReviewKey &a = reviews[i - 1].key, &b = reviews[i].key;
    if (a.split != b.split || a.label != b.label || a.id != b.id) continue;
    throw Error({.where = source,
                 .what = review_path(a) + " and " + review_path(b) + " have the same number",
                 .expected = "one review per number and folder",
                 .advice = ""});
  }
}

}  // namespace

std::string review_path(const ReviewKey& key) {
  return std::string(kSplits[static_cast<size_t>(key.split)]) + "/" +
         kLabels[static_cast<size_t>(key.label)] + "/" + std::to_string(key.id) + "_" +
         std::to_string(key.rating) + ".txt";
}

bool parse_review_path(std::string_view path, ReviewKey& key) {
  std::string_view name = take_last(path);
  if (!name.ends_with(".txt")) return false;
  name.remove_suffix(4);
  const size_t underscore = name.find('_');
  return underscore != std::string_view::npos && parse_number(name.substr(0, underscore), key.id) &&
         parse_number(name.substr(underscore + 1), key.rating) &&
         parse_choice(take_last(path), kLabels, key.label) &&
         parse_choice(take_last(path), kSplits, key.split);
}

std::vector<Review> read_reviews(const std::string& source, Progress& progress) {
  std::vector<Review> reviews;
  if (is_folder(fs::path(source) / "aclImdb")) {
    reviews = read_folder(fs::path(source) / "aclImdb", progress);
  } else if (is_folder(source)) {
    reviews = read_folder(source, progress);
  } else {
    reviews = read_review_archive(source, progress);
  }
  if (reviews.empty()) {
    throw Error({.where = source,
                 .what = "holds no reviews",
                 .expected = "aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt",
                 .advice = ""});
  }
  put_in_order(source, reviews);
  return reviews;
}

}  // namespace lra::tasks
