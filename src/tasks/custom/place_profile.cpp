#include "tasks/custom/place_profile.h"

#include <array>
#include <cmath>

#include "tasks/drawn_examples.h"

namespace lra::tasks {
namespace {

using Profile = std::vector<double>;  // the sum of the tokens at each position

// Profiles of every second example, and of the rest.
std::array<Profile, 2> half_profiles(const Split& split, const CustomConfig& config) {
  constexpr int64_t kMost = 10000;
  const auto length = static_cast<size_t>(config.longest);
  std::array<Profile, 2> halves = {Profile(length), Profile(length)};
  std::vector<int32_t> words(length);
  size_t number = 0;
  for (const int64_t i : drawn_examples(split.size(), kMost)) {
    Profile& half = halves.at(number++ % 2);
    for (int64_t tower = 0; tower < config.towers; ++tower) {
      split.read_tokens(i, tower, words);
      for (size_t k = 0; k < length; ++k) half[k] += words[k];
    }
  }
  return halves;
}

double correlation(const Profile& a, const Profile& b) {
  const auto size = static_cast<double>(a.size());
  double a_mean = 0, b_mean = 0, a_squares = 0, b_squares = 0, products = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    a_mean += a[k] / size;
    b_mean += b[k] / size;
  }
  for (size_t k = 0; k < a.size(); ++k) {
    a_squares += std::pow(a[k] - a_mean, 2);
    b_squares += std::pow(b[k] - b_mean, 2);
    products += (a[k] - a_mean) * (b[k] - b_mean);
  }
  return a_squares > 0 && b_squares > 0 ? products / std::sqrt(a_squares * b_squares) : 0;
}

}  // namespace

std::vector<std::string> doubts_of_places(const Dataset& dataset, const CustomConfig& config) {
  constexpr int64_t kFewestExamples = 200, kFewestTokens = 32, kFewestPositions = 32;
  constexpr double kReliable = 0.8, kUnlike = 0.5;
  std::vector<std::string> doubts;
  const bool is_judged = config.input == "tokens" && config.vocabulary > kFewestTokens &&
                         config.shortest == config.longest && config.longest >= kFewestPositions;
  if (!is_judged || dataset.split("train").size() < kFewestExamples) return doubts;
  const auto train = half_profiles(dataset.split("train"), config);
  if (correlation(train[0], train[1]) < kReliable) return doubts;
  for (const char* name : {"val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestExamples) continue;
    const auto other = half_profiles(split, config);
    if (correlation(other[0], other[1]) < kReliable) continue;
    if (correlation(train[0], other[0]) > kUnlike) continue;
    doubts.push_back(std::string("the large tokens of ") + name +
                     " are at other positions than those of train: are its pixels in another "
                     "order, or its images transposed?");
  }
  return doubts;
}

}  // namespace lra::tasks
