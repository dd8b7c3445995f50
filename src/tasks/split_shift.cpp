#include "tasks/split_shift.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "base/text_format.h"
#include "data/drawn_examples.h"
#include "tasks/own/custom.h"
#include "tasks/own/custom_config.h"

namespace lra::tasks {
namespace {

constexpr int64_t kFewestCompared = 200, kMostCompared = 10000;

constexpr std::array<const char*, 5> kShiftTraits = {
    "number of tokens", "mean of the tokens", "deviation of the tokens", "difference of neighbors",
    "tokens that the first of a pair has more"};
constexpr size_t kDifferenceOfNeighbors = 3;
using Traits = std::array<Spread, kShiftTraits.size()>;

// The sum of the differences between each number and that of the same channel at the next position,
// and how many there are.
struct Differences {
  double sum = 0, count = 0;

  void add(std::span<const int32_t> words, size_t num_channels, bool are_values) {
    const auto number = [&](size_t at) {
      return are_values ? double{std::bit_cast<float>(words[at])} : double(words[at]);
    };
    for (size_t at = num_channels; at < words.size(); ++at) {
      sum += std::abs(number(at) - number(at - num_channels));
      ++count;
    }
  }
};

// Sensors of another day may have another gain.
bool is_far(double a, double b) {
  constexpr double kLeastTimes = 1.25;
  return std::max(a, b) > kLeastTimes * std::min(a, b);
}

// Ids above those of bytes and pixels stand for words, in any order.
bool are_own_names(const Manifest& manifest) {
  return is_own(manifest) && !has_own_values(manifest) && !is_own_text(manifest) &&
         config_of(manifest).vocabulary > kMostPixels;
}

Traits traits_of(const Split& split, const Manifest& manifest) {
  const bool are_tokens = !has_own_values(manifest);
  const bool are_names = are_own_names(manifest);  // of which no mean says anything
  const size_t num_channels =
      are_tokens ? 1 : std::max<size_t>(1, static_cast<size_t>(manifest.token_bytes) / 4);
  const bool are_pixels = is_own(manifest) && !is_own_text(manifest);  // or may be
  std::array<std::vector<double>, kShiftTraits.size()> values;
  std::vector<int32_t> words;
  for (const int64_t i : drawn_examples(split.size(), kMostCompared)) {
    double count = 0, sum = 0, squares = 0;
    Differences differences;
    for (int64_t tower = 0; tower < manifest.num_towers; ++tower) {
      const auto length = static_cast<size_t>(split.sequence_length(i, tower));
      count += static_cast<double>(length);
      words.resize(length * num_channels);
      split.read_tokens(i, tower, words);
      if (are_pixels && !are_names) differences.add(words, num_channels, !are_tokens);
      if (!are_tokens || are_names) continue;
      for (const int32_t word : words) {
        const auto token = static_cast<double>(word - manifest.token_offset);
        sum += token;
        squares += token * token;
      }
    }
    values[0].push_back(count);
    if (manifest.num_towers == 2) {
      values[4].push_back(
          static_cast<double>(split.sequence_length(i, 0) - split.sequence_length(i, 1)));
    }
    if (differences.count > 0) values[3].push_back(differences.sum / differences.count);
    if (count == 0 || !are_tokens || are_names) continue;
    const double mean = sum / count;
    values[1].push_back(mean);
    values[2].push_back(std::sqrt(std::max(0.0, squares / count - mean * mean)));
  }
  Traits traits;
  for (size_t t = 0; t < traits.size(); ++t) traits[t] = Spread::of(values[t]);
  return traits;
}

}  // namespace

Spread Spread::of(const std::vector<double>& values) {
  Spread spread{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) spread.mean += value / count;
  for (const double value : values) squares += std::pow(value - spread.mean, 2);
  spread.deviation = std::sqrt(squares / count);
  return spread;
}

bool is_shifted(const Spread& a, const Spread& b, double fewest_deviations) {
  constexpr double kFewestErrors = 6, kRounding = 1e-9;
  if (a.count == 0 || b.count == 0) return false;
  const double apart = std::abs(a.mean - b.mean);
  const double deviation = std::max({a.deviation, b.deviation, kRounding * std::abs(a.mean)});
  const double error =
      deviation * std::sqrt(1 / static_cast<double>(a.count) + 1 / static_cast<double>(b.count));
  return apart > kFewestErrors * error && apart > fewest_deviations * deviation;
}

std::vector<std::string> doubts_of_shift(const Dataset& dataset) {
  std::vector<std::string> doubts;
  const double fewest_deviations = is_own(dataset.manifest()) ? 1 : 0.25;
  const int num_digits = has_own_values(dataset.manifest()) ? 2 : 1;
  const auto traits_in = [&](const char* name) {
    return traits_of(dataset.split(name), dataset.manifest());
  };
  const auto is_judged = [&](const char* name) {
    return dataset.has(name) && dataset.split(name).size() >= kFewestCompared;
  };
  if (!is_judged("train")) return doubts;
  const Traits train = traits_in("train");
  for (const char* name : {"val", "test"}) {
    if (!is_judged(name)) continue;
    const Traits other = traits_in(name);
    for (size_t t = 0; t < kShiftTraits.size(); ++t) {
      if (!is_shifted(train[t], other[t], fewest_deviations)) continue;
      if (t == kDifferenceOfNeighbors && !is_far(train[t].mean, other[t].mean)) continue;
      doubts.push_back(std::string("examples of ") + name + " are unlike those of train: " +
                       kShiftTraits[t] + " " + fixed(other[t].mean, num_digits) +
                       " on average instead of " + fixed(train[t].mean, num_digits));
      break;
    }
  }
  return doubts;
}

}  // namespace lra::tasks
