// Small files of document pairs for tests.
#pragma once

#include <string>

#include "base/rng.h"
#include "data/test_fixtures.h"

namespace lra::tasks {

inline std::string small_paper(uint64_t number) {
  RandomStream random(number);
  std::string text = "Paper \"" + std::to_string(number) + " \xC3\xA9 ";
  const uint32_t num_words = 5 + random.below(40);
  for (uint32_t k = 0; k < num_words; ++k) text += random.below(3) != 0 ? "parse " : "corpus ";
  return text;
}

// new_aan_pairs.{train,eval,test}.tsv below `root`: 100, 40 and 40 pairs. Linked ones have a second
// text that repeats the letter 'z'. Labels are written as in the official files.
inline void write_small_pairs(const std::string& root) {
  uint64_t number = 0;
  for (const std::string split : {"train", "eval", "test"}) {
    std::string lines;
    for (int i = 0; i < (split == "train" ? 100 : 40); ++i, number += 2) {
      const bool linked = i % 2 == 1;
      lines += std::string(linked ? "1.0" : "0.0") + "\tP" + std::to_string(number) + "\tP" +
               std::to_string(number + 1) + "\t" + small_paper(number) + "\t" +
               small_paper(number + 1) + (linked ? "zzz zzz" : "aaa aaa") + "\n";
    }
    write_text(root + "/new_aan_pairs." + split + ".tsv", lines);
  }
}

}  // namespace lra::tasks
