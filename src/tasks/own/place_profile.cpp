#include "tasks/own/place_profile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "data/drawn_examples.h"

namespace lra::tasks {
namespace {

// The mean token or value at each place, in deviations of its channel from the mean of the channel,
// which has nothing to do with the position.
using Profile = std::vector<double>;

// Sums over examples of the numbers at each place, and of the squares in each channel.
struct PlaceSums {
  std::vector<double> sums, squares;
  double count = 0;

  PlaceSums(size_t num_places, size_t num_channels) : sums(num_places), squares(num_channels) {}

  Profile profile() const {
    Profile means = sums;
    const size_t num_channels = squares.size();
    const double length = static_cast<double>(sums.size() / num_channels);
    for (size_t c = 0; c < num_channels; ++c) {
      double mean = 0;
      for (size_t k = c; k < sums.size(); k += num_channels) mean += sums[k] / (length * count);
      const double variance = squares[c] / (length * count) - mean * mean;
      const double deviation = std::sqrt(std::max(variance, 1e-30));
      for (size_t k = c; k < sums.size(); k += num_channels) {
        means[k] = (sums[k] / count - mean) / deviation;
      }
    }
    return means;
  }
};

// Profiles of every second example, and of the rest.
std::array<Profile, 2> half_profiles(const Split& split, const CustomConfig& config) {
  constexpr int64_t kMost = 10000;
  const bool are_values = config.input == "values";
  const auto num_channels = static_cast<size_t>(split.words_per_token());
  const auto num_words = static_cast<size_t>(config.longest) * num_channels;
  std::array<PlaceSums, 2> halves = {PlaceSums(num_words, num_channels),
                                     PlaceSums(num_words, num_channels)};
  std::vector<int32_t> words(num_words);
  size_t number = 0;
  for (const int64_t i : drawn_examples(split.size(), kMost)) {
    PlaceSums& half = halves.at(number++ % 2);
    for (int64_t tower = 0; tower < config.towers; ++tower) {
      split.read_tokens(i, tower, words);
      ++half.count;
      for (size_t k = 0; k < num_words; ++k) {
        const double x = are_values ? std::bit_cast<float>(words[k]) : double(words[k]);
        half.sums[k] += x;
        half.squares[k % num_channels] += x * x;
      }
    }
  }
  return {halves[0].profile(), halves[1].profile()};
}

// The correlation of two profiles, whose means are 0.
double correlation(const Profile& a, const Profile& b) {
  double a_squares = 0, b_squares = 0, products = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    a_squares += a[k] * a[k];
    b_squares += b[k] * b[k];
    products += a[k] * b[k];
  }
  return a_squares > 0 && b_squares > 0 ? products / std::sqrt(a_squares * b_squares) : 0;
}

// Two halves agree about a profile that is more than the trend within windows of a long series.
bool is_reliable(const std::array<Profile, 2>& halves) {
  constexpr double kReliable = 0.8, kLeastSpread = 0.08;
  double squares = 0;
  for (const double x : halves[0]) squares += x * x;
  return correlation(halves[0], halves[1]) >= kReliable &&
         squares >= kLeastSpread * kLeastSpread * static_cast<double>(halves[0].size());
}

}  // namespace

std::vector<std::string> doubts_of_places(const Dataset& dataset, const CustomConfig& config) {
  constexpr int64_t kFewestExamples = 200, kFewestTokens = 32, kFewestPositions = 32;
  constexpr double kUnlike = 0.5;
  std::vector<std::string> doubts;
  const bool are_values = config.input == "values";
  const bool are_judged_tokens = config.input == "tokens" && config.vocabulary > kFewestTokens;
  const bool is_judged = (are_values || are_judged_tokens) && config.shortest == config.longest &&
                         config.longest >= kFewestPositions;
  if (!is_judged || dataset.split("train").size() < kFewestExamples) return doubts;
  const auto train = half_profiles(dataset.split("train"), config);
  if (!is_reliable(train)) return doubts;
  for (const char* name : {"val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestExamples) continue;
    const auto other = half_profiles(split, config);
    if (!is_reliable(other)) continue;
    if (correlation(train[0], other[0]) > kUnlike) continue;
    doubts.push_back(std::string("the large ") + (are_values ? "values" : "tokens") + " of " +
                     name +
                     " are at other positions than those of train: are its pixels in another "
                     "order, or its images transposed?");
  }
  return doubts;
}

}  // namespace lra::tasks
