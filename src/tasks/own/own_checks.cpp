#include "tasks/own/own_checks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "base/quoted.h"
#include "base/text_format.h"
#include "checks/place_baseline.h"
#include "data/drawn_examples.h"
#include "tasks/data_doubts.h"
#include "tasks/own/centroid_baseline.h"
#include "tasks/own/id_doubts.h"
#include "tasks/own/input_doubts.h"
#include "tasks/own/place_profile.h"
#include "tasks/own/value_doubts.h"
#include "tasks/own/word_baseline.h"
#include "tasks/split_checks.h"

namespace lra::tasks {
namespace {

// The classes whose shares differ most between train and another split.
void add_doubts_of_shares(const Dataset& dataset, const CustomConfig& config,
                          const std::vector<std::string>& names, std::vector<std::string>& doubts) {
  constexpr double kFarthest = 0.25, kStandardErrors = 4;
  const auto shares_of = [&](const Split& split) {
    std::vector<double> shares(static_cast<size_t>(config.classes));
    for (int64_t i = 0; i < split.size(); ++i) {
      shares.at(static_cast<size_t>(split.label(i))) += 1 / static_cast<double>(split.size());
    }
    return shares;
  };
  const std::vector<double> train = shares_of(dataset.split("train"));
  for (const char* name : {"val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestToJudge) continue;
    const std::vector<double> shares = shares_of(split);
    size_t worst = 0;
    for (size_t c = 0; c < shares.size(); ++c) {
      if (std::abs(shares[c] - train[c]) > std::abs(shares[worst] - train[worst])) worst = c;
    }
    const double usual = train[worst], found = shares[worst];
    const double error = std::sqrt(usual * (1 - usual) / static_cast<double>(split.size()));
    if (std::abs(found - usual) <= std::max(kFarthest, kStandardErrors * error)) continue;
    doubts.push_back("class " + in_quotes(names.at(worst)) + " is " + percent(found, 0) + " of " +
                     name + " and " + percent(usual, 0) + " of train: were all files there?");
  }
}

// A baseline that is right on val and not on test: the labels or the inputs of the test mean
// something else. The best place says less: others persons or sensors may lack it.
void add_doubt_of_test_labels(const Dataset& dataset, const CustomConfig& config,
                              std::vector<std::string>& doubts) {
  constexpr double kMostBelow = 0.15, kMostBelowAtAPlace = 0.25, kStandardErrors = 4;
  const Split train = dataset.split("train"), val = dataset.split("val"),
              test = dataset.split("test");
  if (val.size() < kFewestToJudge || test.size() < kFewestToJudge) return;
  const auto is_doubted = [&](double most_below, const auto& baseline_on) {
    const checks::Baseline on_val = baseline_on(val), on_test = baseline_on(test);
    const double below = on_val.accuracy - on_test.accuracy;
    const double error =
        error_of_difference(on_val.accuracy, val.size(), on_test.accuracy, test.size());
    if (below <= std::max(most_below, kStandardErrors * error)) return false;
    doubts.push_back("the baseline '" + on_val.name + "' is right on " + percent(on_val.accuracy) +
                     " of val and on " + percent(on_test.accuracy) +
                     " of test: do labels and inputs of the test mean what those of train mean?");
    return true;
  };
  if (is_doubted(kMostBelow, [&](const Split& s) { return centroid_baseline(train, s, config); }) ||
      is_doubted(kMostBelowAtAPlace,
                 [&](const Split& s) {
                   return checks::place_baseline(train, s, config.classes, config.towers);
                 }) ||
      config.input != "text") {
    return;
  }
  is_doubted(kMostBelow, [&](const Split& s) {
    return word_baseline(train, s, config.classes, config.towers);
  });
}

// The places of sequences of one length at which all examples of a class have the number of that
// class, and no two classes the same.
std::set<size_t> telling_places(const Split& split, const CustomConfig& config) {
  const auto size = static_cast<size_t>(config.longest * config.channels);
  const auto classes = static_cast<size_t>(config.classes);
  std::vector<std::optional<int32_t>> numbers(size * classes);  // of a place and a class
  std::set<size_t> places;
  for (size_t place = 0; place < size; ++place) places.insert(place);
  std::vector<int32_t> words(size);
  for (int64_t i = 0; i < split.size() && !places.empty(); ++i) {
    split.read_tokens(i, 0, words);
    std::erase_if(places, [&](size_t place) {
      auto& number = numbers[place * classes + static_cast<size_t>(split.label(i))];
      if (!number) number = words[place];
      return *number != words[place];
    });
  }
  std::erase_if(places, [&](size_t place) {
    std::set<int32_t> different;
    size_t count = 0;
    for (size_t c = 0; c < classes; ++c) {
      if (!numbers[place * classes + c]) continue;
      different.insert(*numbers[place * classes + c]);
      ++count;
    }
    return count < 2 || different.size() < count;
  });
  return places;
}

// The column of the labels among the numbers of one split, as when another column was lost.
void add_doubt_of_told_labels(const Dataset& dataset, const CustomConfig& config,
                              std::vector<std::string>& doubts) {
  constexpr int64_t kMostNumbers = 1 << 22;
  if (config.towers != 1 || config.shortest != config.longest ||
      config.longest * config.channels * config.classes > kMostNumbers) {
    return;
  }
  const std::set<size_t> in_train = telling_places(dataset.split("train"), config);
  for (const char* name : {"val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestToJudge) continue;
    for (const size_t place : telling_places(split, config)) {
      if (in_train.contains(place)) continue;  // the baseline of the best place knows it
      doubts.push_back("position " + std::to_string(static_cast<int64_t>(place) / config.channels) +
                       " of " + name +
                       " gives the label of every example, and that of train does not: is it the "
                       "column of the labels?");
      break;
    }
  }
}

}  // namespace

std::vector<std::string> doubts_of_own_data(const Dataset& dataset, const CustomConfig& config,
                                            const std::vector<std::string>& names) {
  std::vector<std::string> doubts;
  const int64_t num_test = dataset.split("test").size();
  if (num_test < kFewestToJudge) {
    // Half of the 95 % interval of an accuracy of 50 %.
    const double half_width = std::min(0.5, 0.98 / std::sqrt(static_cast<double>(num_test)));
    doubts.push_back(
        "the test has " + std::to_string(num_test) + (num_test == 1 ? " example" : " examples") +
        ": an accuracy on it is uncertain by " + percent(half_width, 0) + " to either side");
  }
  if (config.input == "values") {
    std::ranges::move(doubts_of_values(dataset, config), std::back_inserter(doubts));
  }
  if (config.input != "values") {
    std::ranges::move(doubts_of_ids(dataset, config), std::back_inserter(doubts));
  }
  std::ranges::move(doubts_of_places(dataset, config), std::back_inserter(doubts));
  add_doubts_of_shares(dataset, config, names, doubts);
  add_doubt_of_test_labels(dataset, config, doubts);
  add_doubt_of_told_labels(dataset, config, doubts);
  std::ranges::move(doubts_of_inputs(dataset, config), std::back_inserter(doubts));
  return doubts;
}

}  // namespace lra::tasks
