#include "tasks/own/id_doubts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text_format.h"
#include "data/drawn_examples.h"
#include "tasks/own/neighbor_correlation.h"
#include "tasks/split_checks.h"

namespace lra::tasks {
namespace {

// The correlation of the ids at neighboring positions.
double neighbor_correlation(const Split& train) {
  constexpr int64_t kMostDrawn = 500;
  NeighborCorrelation neighbors;
  std::vector<int32_t> ids;
  for (const int64_t i : drawn_examples(train.size(), kMostDrawn)) {
    ids.resize(static_cast<size_t>(train.sequence_length(i, 0)));
    train.read_tokens(i, 0, ids);
    for (size_t k = 1; k < ids.size(); ++k) neighbors.add(ids[k - 1], ids[k]);
  }
  return neighbors.value();
}

// Integers of which neighbors are near are measurements, not names of something: heart rates,
// samples of audio. Pixels up to 255 are read as tokens in the benchmark, too.
void add_doubt_of_measurements(double correlation, const CustomConfig& config,
                               std::vector<std::string>& doubts) {
  constexpr double kAlike = 0.8;
  if (config.vocabulary <= kMostPixels || correlation <= kAlike) return;
  doubts.push_back(
      "neighboring token ids are near one another, as those of measurements are: as numbers they "
      "are read with --set task.input=values");
}

// Calls `act(example, id)` for each token.
template <typename Act>
void visit_ids(const Split& split, const CustomConfig& config, const Act& act) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < split.size() * config.towers; ++i) {
    const int64_t example = i / config.towers, tower = i % config.towers;
    ids.resize(static_cast<size_t>(split.sequence_length(example, tower)));
    split.read_tokens(example, tower, ids);
    for (const int32_t id : ids) act(example, static_cast<size_t>(id));
  }
}

// Counts of each id in a split.
std::vector<int64_t> counts_of_ids(const Split& split, const CustomConfig& config) {
  std::vector<int64_t> counts(static_cast<size_t>(config.vocabulary));
  visit_ids(split, config, [&](int64_t, size_t id) { ++counts.at(id); });
  return counts;
}

// Ids that never occur are rows of the embedding that nothing trains.
void add_doubt_of_vocabulary(const Dataset& dataset, const CustomConfig& config,
                             std::vector<std::string>& doubts) {
  constexpr int64_t kLargeVocabulary = 20'000;
  constexpr int64_t kMostTimes = 50;
  if (config.vocabulary < kLargeVocabulary) return;
  std::vector<bool> occurs(static_cast<size_t>(config.vocabulary));
  for (const auto& [name, unused] : dataset.manifest().splits) {
    const std::vector<int64_t> counts = counts_of_ids(dataset.split(name), config);
    for (size_t id = 0; id < counts.size(); ++id) occurs[id] = occurs[id] || counts[id] > 0;
  }
  const int64_t num_different = std::ranges::count(occurs, true);
  if (config.vocabulary <= kMostTimes * num_different) return;
  doubts.push_back("only " + thousands(num_different) + " different token ids occur, and the " +
                   "largest is " + thousands(config.vocabulary - 2) +
                   ": are they ids? The model has an embedding for each id up to the largest");
}

// The share of the tokens of a split whose ids occur in one of its examples alone. Of a further
// example of the same source about as many are new (Good, 1953).
double share_of_single(const Split& split, const CustomConfig& config,
                       const std::vector<int64_t>& counts) {
  constexpr int64_t kNone = -1, kSeveral = -2;
  std::vector<int64_t> example_of(counts.size(), kNone);
  visit_ids(split, config, [&](int64_t example, size_t id) {
    int64_t& only = example_of[id];
    only = only == kNone || only == example ? example : kSeveral;
  });
  double all = 0, single = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    all += static_cast<double>(counts[id]);
    if (example_of[id] >= 0) single += static_cast<double>(counts[id]);
  }
  return single / std::max(1.0, all);
}

// Half of the sum of the differences of two distributions: 0 for the same, 1 for distributions
// without a common id.
double distance_of(const std::vector<int64_t>& counts, const std::vector<int64_t>& others) {
  const auto sum = [](const std::vector<int64_t>& numbers) {
    return static_cast<double>(
        std::max<int64_t>(1, std::accumulate(numbers.begin(), numbers.end(), int64_t{0})));
  };
  const double all = sum(counts), all_others = sum(others);
  double distance = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    distance += 0.5 * std::abs(static_cast<double>(counts[id]) / all -
                               static_cast<double>(others[id]) / all_others);
  }
  return distance;
}

// The distance of some examples of train, as many as another split has, from the rest of train:
// rare ids make it large.
double usual_distance(const Split& train, const std::vector<int64_t>& of_train, int64_t size,
                      const CustomConfig& config) {
  const int64_t part = std::min(size, train.size() / 3);
  const std::vector<int64_t> of_part =
      counts_of_ids(train.subset(drawn_examples(train.size(), part)), config);
  std::vector<int64_t> rest = of_train;
  for (size_t id = 0; id < rest.size(); ++id) rest[id] -= of_part[id];
  return distance_of(of_part, rest);
}

// The number by which all ids of a split seem to be larger than those of train, as after special
// tokens were added to a vocabulary: the one with which the split is most likely; 0 if none is far
// more likely than 0. Of measurements, larger ones are brighter or louder ones.
int64_t shift_of(const std::vector<int64_t>& counts, const std::vector<int64_t>& train) {
  constexpr int64_t kFarthest = 64;
  constexpr double kFewestErrors = 10, kLeastGain = 0.02;  // of all; nats of a token
  const auto num_ids = static_cast<int64_t>(train.size());
  const auto log_count = [&](int64_t id) {
    return std::log(
        id < 0 || id >= num_ids ? 0.5 : static_cast<double>(train[static_cast<size_t>(id)]) + 0.5);
  };
  std::vector<int64_t> found;
  for (int64_t id = 0; id < num_ids; ++id) {
    if (counts[static_cast<size_t>(id)] > 0) found.push_back(id);
  }
  double most = kFewestErrors;
  int64_t likeliest = 0;
  for (int64_t shift = -kFarthest; shift <= kFarthest; ++shift) {
    double gain = 0, squares = 0, all = 0;
    for (const int64_t id : found) {
      const auto count = static_cast<double>(counts[static_cast<size_t>(id)]);
      const double difference = log_count(id - shift) - log_count(id);
      all += count;
      gain += count * difference;
      squares += count * difference * difference;
    }
    if (gain < kLeastGain * all || gain <= most * std::sqrt(squares)) continue;
    most = gain / std::sqrt(squares);
    likeliest = shift;
  }
  return likeliest;
}

// A split that was encoded in another way holds ids that no training example has, or has them
// equally often as others are in train. Words are names: their neighbors are not near one another.
void add_doubts_of_coding(const Dataset& dataset, const CustomConfig& config, bool are_names,
                          std::vector<std::string>& doubts) {
  constexpr double kMostNew = 0.05, kMostTimesNew = 2, kFarthest = 0.25;
  constexpr int64_t kFewestToCompare = 200;  // few examples have few of the usual tokens
  const Split train_split = dataset.split("train");
  const std::vector<int64_t> train = counts_of_ids(train_split, config);
  const double most_new = kMostNew + kMostTimesNew * share_of_single(train_split, config, train);
  for (const char* name : {"val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestToJudge) continue;
    const std::vector<int64_t> counts = counts_of_ids(split, config);
    int64_t all = 0, unseen = 0;
    for (size_t id = 0; id < counts.size(); ++id) {
      all += counts[id];
      if (train[id] == 0) unseen += counts[id];
    }
    const double share =
        static_cast<double>(unseen) / static_cast<double>(std::max<int64_t>(all, 1));
    const bool is_compared = std::min(split.size(), train_split.size()) >= kFewestToCompare;
    const int64_t shift = is_compared && are_names ? shift_of(counts, train) : 0;
    if (shift != 0) {
      doubts.push_back("tokens of " + std::string(name) +
                       " occur as often as those of train whose ids are " +
                       std::to_string(std::abs(shift)) + (shift > 0 ? " less" : " more") +
                       ": was it encoded with another vocabulary?");
      continue;
    }
    if (share > most_new) {
      doubts.push_back(percent(share, 0) + " of the tokens of " + name +
                       " are not in train: was it encoded in another way?");
      continue;
    }
    const double distance = is_compared ? distance_of(counts, train) : 0;
    if (distance <= kFarthest ||
        distance <= kFarthest + usual_distance(train_split, train, split.size(), config)) {
      continue;
    }
    doubts.push_back(percent(distance, 0) + " of the tokens of " + name +
                     " would have to be others to occur as often as in train: was it encoded in "
                     "another way?");
  }
}

}  // namespace

std::vector<std::string> doubts_of_ids(const Dataset& dataset, const CustomConfig& config) {
  std::vector<std::string> doubts;
  constexpr double kUnlike = 0.5;
  const Split train = dataset.split("train");
  const bool are_tokens = config.input == "tokens";
  if (are_tokens) add_doubt_of_vocabulary(dataset, config, doubts);
  if (train.size() < kFewestToJudge) return doubts;
  const double correlation = are_tokens ? neighbor_correlation(train) : 0;
  if (are_tokens) add_doubt_of_measurements(correlation, config, doubts);
  add_doubts_of_coding(dataset, config, are_tokens && correlation < kUnlike, doubts);
  return doubts;
}

}  // namespace lra::tasks
