// The Large Movie Review Dataset (Maas et al., ACL 2011) as its authors ship it.
//
// aclImdb/{train,test}/{neg,pos}/<id>_<rating>.txt, one review a file. Read from the folder or from
// a tar archive, which is streamed: nothing is unpacked to disk. The unlabelled reviews (unsup) and
// everything else in an archive are passed over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tasks/text/review_names.h"

namespace lra {
class Progress;
}

namespace lra::tasks {

inline constexpr uint64_t kMaxReviewBytes = uint64_t{1} << 20;  // the longest real one has 14 kB

// The labelled reviews of a source, in the order of ReviewKey.
struct Reviews {
  std::vector<ReviewKey> keys;
  uint64_t num_bytes = 0;    // of all texts
  bool drawn_split = false;  // the source does not say which reviews are the test's
  std::function<std::string(size_t i, const ReviewKey& key)> read;  // what text(i) calls

  // The text of keys[i]. Several threads may call it. Throws lra::Error if it cannot be read, has
  // over kMaxReviewBytes, or is not a text (text_lines.h).
  std::string text(size_t i) const { return read(i, keys[i]); }
};

struct Review {
  ReviewKey key;
  std::string text;
};
// Reviews in memory, by their keys.
Reviews reviews_in_memory(std::vector<Review> found);

// `source` is the folder aclImdb, a folder that holds it, or a tar archive (plain, gz, bz2 or xz).
// The texts of an archive are held in memory; those of a folder are read when asked for, and
// `progress`, which counts reviews read, must live as long. Throws lra::Error for a source that is
// none, odd file names, a number that occurs twice, ratings
// that are higher in neg than in pos, a review over kMaxReviewBytes, and for archives
// that are damaged, hold links, special files or reviews of over 96 MiB, or have absolute names,
// names with "..", or absurd sizes.
Reviews open_reviews(const std::string& source, Progress& progress);

}  // namespace lra::tasks
