#include "tasks/own/centroid_baseline.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "checks/nearest_mean.h"

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

}  // namespace lra::tasks
