#include "tasks/own/own_baselines.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "checks/words.h"
#include "data/drawn_examples.h"

namespace lra::tasks {
namespace {

constexpr int64_t kCounts = 512, kWindows = 64;

void count(std::span<const int32_t> ids, std::span<float> to) {
  for (const int32_t id : ids) ++to[static_cast<size_t>(id % kCounts)];
  for (float& value : to) value = std::log1p(value);
}

void average(std::span<const int32_t> words, size_t channels, std::span<float> to) {
  const size_t length = words.size() / channels, windows = to.size() / channels;
  for (size_t w = 0; w < windows; ++w) {
    const size_t begin = w * length / windows;
    const size_t end = std::max(std::min(begin + 1, length), (w + 1) * length / windows);
    for (size_t at = begin; at < end; ++at) {
      for (size_t c = 0; c < channels; ++c) {
        to[w * channels + c] +=
            std::bit_cast<float>(words[at * channels + c]) / static_cast<float>(end - begin);
      }
    }
  }
}

template <typename Act>
void visit_words(const Split& split, int64_t example, int64_t num_towers, const Act& act) {
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    checks::for_each_word(split.stored_bytes(example, tower), act);
  }
}

// The class that a word comes with, and how purely: rare words by chance, so they count less.
struct Telling {
  int32_t label = 0;
  double purity = 0;
};

using TellingWords = std::unordered_map<uint64_t, Telling>;

TellingWords telling_words(const Split& train, int64_t num_towers) {
  constexpr double kDoubtedExamples = 2;
  std::unordered_map<uint64_t, std::unordered_map<int32_t, int64_t>> counts;
  for (int64_t i = 0; i < train.size(); ++i) {
    std::unordered_set<uint64_t> words;  // of this example, once each
    visit_words(train, i, num_towers, [&](uint64_t word) { words.insert(word); });
    for (const uint64_t word : words) ++counts[word][train.label(i)];
  }
  TellingWords found;
  for (const auto& [word, by_label] : counts) {
    int64_t all = 0, most = 0;
    Telling& telling = found[word];
    for (const auto& [label, count] : by_label) {
      all += count;
      if (count < most || (count == most && label > telling.label)) continue;
      most = count;
      telling.label = label;
    }
    telling.purity = static_cast<double>(most) / (static_cast<double>(all) + kDoubtedExamples);
  }
  return found;
}

}  // namespace

checks::Baseline centroid_baseline(const Split& train, const Split& test,
                                   const CustomConfig& config) {
  const bool are_values = config.input == "values";
  const int64_t per_tower =
      are_values ? config.channels * std::min(kWindows, config.length) : kCounts;
  const auto read = [&](const Split& split, int64_t example, std::span<float> to) {
    for (int64_t tower = 0; tower < config.towers; ++tower) {
      const int64_t stored = std::min(split.sequence_length(example, tower), config.length);
      std::vector<int32_t> words(static_cast<size_t>(stored * split.words_per_token()));
      split.read_tokens(example, tower, words);
      const auto part =
          to.subspan(static_cast<size_t>(tower * per_tower), static_cast<size_t>(per_tower));
      are_values ? average(words, static_cast<size_t>(config.channels), part) : count(words, part);
    }
  };
  checks::Baseline result = checks::nearest_mean_baseline(
      train, test, config.classes,
      {.size = config.towers * per_tower, .read = read, .are_scaled = true});
  if (!are_values) result.name += " of counts";
  return result;
}

checks::Baseline word_baseline(const Split& train, const Split& test, const CustomConfig& config) {
  constexpr int64_t kMostExamples = 10000;
  checks::Baseline result{.name = "most telling word", .accuracy = 0};
  if (train.size() == 0) return result;
  const TellingWords words =
      telling_words(train.subset(drawn_examples(train.size(), kMostExamples)), config.towers);
  const int32_t usual = checks::most_frequent_label(train, config.classes);
  result.accuracy = checks::share_right(test, [&](int64_t i) {
    Telling best{.label = usual, .purity = 0};
    visit_words(test, i, config.towers, [&](uint64_t word) {
      const auto found = words.find(word);
      if (found != words.end() && found->second.purity > best.purity) best = found->second;
    });
    return best.label;
  });
  return result;
}

}  // namespace lra::tasks
