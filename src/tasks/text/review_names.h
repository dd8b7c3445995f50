// The names of reviews in the Large Movie Review Dataset (Maas et al., ACL 2011):
// aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace lra::tasks {

// Position of a review; the order of members is the order of examples: train before test, neg
// before pos, then the number.
struct ReviewKey {
  int split = 0;  // index of kReviewSplits
  int label = 0;  // index of kReviewLabels
  int64_t id = 0;
  int64_t rating = 0;                                  // 1 to 10 in the official data
  auto operator<=>(const ReviewKey&) const = default;  // NOLINT(modernize-use-nullptr): not there
};

inline constexpr std::array<const char*, 2> kReviewSplits = {"train", "test"};
inline constexpr std::array<const char*, 2> kReviewLabels = {"neg", "pos"};

// "train/neg/0_3.txt"
std::string review_path(const ReviewKey& key);
// True if a path leads into one of the four folders of reviews.
bool is_in_review_folder(std::string_view path);
// Throws lra::Error for a file in one of them whose name is not that of a review.
[[noreturn]] void refuse_review_name(const std::string& where);
// The key of a path that ends in such a name. False for any other path; throws nothing.
bool parse_review_path(std::string_view path, ReviewKey& key);

}  // namespace lra::tasks
