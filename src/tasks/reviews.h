// The Large Movie Review Dataset (Maas et al., ACL 2011) as its authors ship it.
//
// aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt, one review a file. Read from the folder or from
// a tar archive, which is streamed: nothing is unpacked to disk. The unlabelled reviews (unsup) and
// everything else in an archive are passed over.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lra {
class Progress;
}

namespace lra::tasks {

// Where a review stands; the order of members is the order of examples: train before test, neg
// before pos, then the number.
struct ReviewKey {
  int split = 0;  // 0 train, 1 test
  int label = 0;  // 0 neg, 1 pos
  int64_t id = 0;
  int64_t rating = 0;                                  // 1 to 10 in the official data
  auto operator<=>(const ReviewKey&) const = default;  // NOLINT(modernize-use-nullptr): not there
};

struct Review {
  ReviewKey key;
  std::string text;
};

// "train/neg/0_3.txt"
std::string review_path(const ReviewKey& key);
// The key of a path that ends in such a name. False for any other path; throws nothing.
bool parse_review_path(std::string_view path, ReviewKey& key);

// Reads all labelled reviews, in the order of ReviewKey. `source` is the folder aclImdb, a folder
// that holds it, or a tar archive (plain, gz, bz2 or xz). Throws lra::Error for a source that is
// none, odd file names, a number that occurs twice, a review over 1 MiB, and for archives that are
// damaged, hold links or special files, or have absolute names, names with "..", or absurd sizes.
std::vector<Review> read_reviews(const std::string& source, Progress& progress);

}  // namespace lra::tasks
