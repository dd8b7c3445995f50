#include "tasks/retrieval/shared_words.h"

#include <algorithm>
#include <vector>

#include "base/hash.h"
#include "base/parallel.h"

namespace lra::tasks {
namespace {

constexpr size_t kBytesRead = 4000, kShortestWord = 4;

// Hashes of the different words, ascending.
std::vector<uint64_t> words_of(std::span<const uint8_t> text) {
  std::vector<uint64_t> words;
  std::string word;
  const auto end_word = [&] {
    if (word.size() >= kShortestWord) words.push_back(hash64(word));
    word.clear();
  };
  for (const uint8_t byte : text.first(std::min(text.size(), kBytesRead))) {
    const auto lower = static_cast<char>(byte | 0x20);
    if (lower >= 'a' && lower <= 'z') {
      word += lower;
    } else {
      end_word();
    }
  }
  end_word();
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

double shared_part(const Split& split, int64_t pair) {
  const auto a = words_of(split.stored_bytes(pair, 0)), b = words_of(split.stored_bytes(pair, 1));
  std::vector<uint64_t> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  const size_t fewer = std::max<size_t>(1, std::min(a.size(), b.size()));
  return static_cast<double>(both.size()) / static_cast<double>(fewer);
}

struct Pair {
  double shared;
  int32_t label;
};

std::vector<Pair> pairs_of(const Split& split) {
  std::vector<Pair> pairs(static_cast<size_t>(split.size()));
  parallel_ranges(split.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      pairs[static_cast<size_t>(i)] = {shared_part(split, i), split.label(i)};
    }
  });
  return pairs;
}

// Pairs from this share on are called linked: the share with the fewest mistakes.
double best_threshold(std::vector<Pair> pairs) {
  std::ranges::sort(pairs, {}, &Pair::shared);
  int64_t right = std::ranges::count(pairs, 1, &Pair::label), most = right;
  double threshold = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    right += pairs[i].label == 1 ? -1 : 1;
    const bool is_last_of_equals = i + 1 < pairs.size() && pairs[i + 1].shared > pairs[i].shared;
    if (!is_last_of_equals || right <= most) continue;
    most = right;
    threshold = pairs[i + 1].shared;
  }
  return threshold;
}

}  // namespace

checks::Baseline shared_words_baseline(const Split& train, const Split& test) {
  const double threshold = best_threshold(pairs_of(train));
  const std::vector<Pair> pairs = pairs_of(test);
  const auto right = std::ranges::count_if(
      pairs, [&](const Pair& pair) { return (pair.shared >= threshold) == (pair.label == 1); });
  return {.name = "shared words",
          .accuracy =
              static_cast<double>(right) / static_cast<double>(std::max<size_t>(1, pairs.size()))};
}

}  // namespace lra::tasks
