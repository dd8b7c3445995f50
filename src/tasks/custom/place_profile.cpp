#include "tasks/custom/place_profile.h"

#include <array>
#include <bit>
#include <cmath>

#include "tasks/drawn_examples.h"

namespace lra::tasks {
namespace {

using Profile = std::vector<double>;  // the sum of the tokens or values at each place

// Subtracts the mean of each channel, which has nothing to do with the position.
void center(Profile& profile, size_t num_channels) {
  const double length = static_cast<double>(profile.size() / num_channels);
  for (size_t c = 0; c < num_channels; ++c) {
    double mean = 0;
    for (size_t k = c; k < profile.size(); k += num_channels) mean += profile[k] / length;
    for (size_t k = c; k < profile.size(); k += num_channels) profile[k] -= mean;
  }
}

// Profiles of every second example, and of the rest.
std::array<Profile, 2> half_profiles(const Split& split, const CustomConfig& config) {
  constexpr int64_t kMost = 10000;
  const auto num_words = static_cast<size_t>(config.longest * split.words_per_token());
  std::array<Profile, 2> halves = {Profile(num_words), Profile(num_words)};
  std::vector<int32_t> words(num_words);
  size_t number = 0;
  for (const int64_t i : drawn_examples(split.size(), kMost)) {
    Profile& half = halves.at(number++ % 2);
    for (int64_t tower = 0; tower < config.towers; ++tower) {
      split.read_tokens(i, tower, words);
      for (size_t k = 0; k < num_words; ++k) {
        half[k] += config.input == "values" ? std::bit_cast<float>(words[k]) : float(words[k]);
      }
    }
  }
  for (Profile& half : halves) center(half, static_cast<size_t>(split.words_per_token()));
  return halves;
}

// Of two profiles around 0.
double correlation(const Profile& a, const Profile& b) {
  double a_squares = 0, b_squares = 0, products = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    a_squares += a[k] * a[k];
    b_squares += b[k] * b[k];
    products += a[k] * b[k];
  }
  return a_squares > 0 && b_squares > 0 ? products / std::sqrt(a_squares * b_squares) : 0;
}

}  // namespace

std::vector<std::string> doubts_of_places(const Dataset& dataset, const CustomConfig& config) {
  constexpr int64_t kFewestExamples = 200, kFewestTokens = 32, kFewestPositions = 32;
  constexpr double kReliable = 0.8, kUnlike = 0.5;
  std::vector<std::string> doubts;
  const bool are_values = config.input == "values";
  const bool are_judged_tokens = config.input == "tokens" && config.vocabulary > kFewestTokens;
  const bool is_judged = (are_values || are_judged_tokens) && config.shortest == config.longest &&
                         config.longest >= kFewestPositions;
  if (!is_judged || dataset.split("train").size() < kFewestExamples) return doubts;
  const auto train = half_profiles(dataset.split("train"), config);
  if (correlation(train[0], train[1]) < kReliable) return doubts;
  for (const char* name : {"val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestExamples) continue;
    const auto other = half_profiles(split, config);
    if (correlation(other[0], other[1]) < kReliable) continue;
    if (correlation(train[0], other[0]) > kUnlike) continue;
    doubts.push_back(std::string("the large ") + (are_values ? "values" : "tokens") + " of " +
                     name +
                     " are at other positions than those of train: are its pixels in another "
                     "order, or its images transposed?");
  }
  return doubts;
}

}  // namespace lra::tasks
