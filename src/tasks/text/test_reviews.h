// A small copy of IMDb for tests.
#pragma once

#include <string>

#include "base/rng.h"
#include "data/test_fixtures.h"
#include "tasks/text/review_names.h"

namespace lra::tasks {

// A folder aclImdb below `root` with `count` reviews per split and label, in which good reviews
// have more letters 'g' and bad ones more letters 'b'. Ratings and numbers are as odd as the real
// ones.
inline void write_small_imdb(const std::string& root, int64_t count) {
  RandomStream random(5);
  for (int split = 0; split < 2; ++split) {
    for (int label = 0; label < 2; ++label) {
      for (int64_t i = 0; i < count; ++i) {
        const ReviewKey key{
            .split = split, .label = label, .id = 3 * i, .rating = (label == 1 ? 7 : 1) + i % 4};
        std::string text = "Review \xC3\xA9" + std::to_string(random.next_u32()) + " ";
        const uint32_t num_words = 3 + random.below(60);
        for (uint32_t k = 0; k < num_words; ++k) {
          const bool usual = random.below(4) != 0;
          text += (usual == (label == 1)) ? "good " : "bad ";
        }
        write_text(root + "/aclImdb/" + review_path(key), text);
      }
    }
  }
}

}  // namespace lra::tasks
