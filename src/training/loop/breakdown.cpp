#include "training/loop/breakdown.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "base/parsed_number.h"
#include "base/text_format.h"

namespace lra::training {
namespace {

constexpr size_t kMaxValues = 10;      // of a number, each a group of its own
constexpr size_t kMaxRanges = 8;       // else
constexpr size_t kMaxWords = 50;       // different texts of a property that is a table
constexpr size_t kMaxClassPairs = 50;  // classes of a confusion matrix

void add(BreakdownGroup& to, const BreakdownGroup& more) {
  to.num_examples += more.num_examples;
  to.num_correct += more.num_correct;
}

using Numbers = std::map<int64_t, BreakdownGroup>;

// A group for each number, or ranges if there are many.
std::vector<BreakdownGroup> number_groups(const Numbers& numbers, size_t num_examples) {
  std::vector<BreakdownGroup> groups;
  size_t seen = 0;
  bool is_open = false;
  int64_t first = 0;
  for (const auto& [value, group] : numbers) {
    if (!is_open) {
      groups.emplace_back();
      first = value;
    }
    add(groups.back(), group);
    seen += static_cast<size_t>(group.num_examples);
    groups.back().name =
        first == value ? thousands(value) : thousands(first) + " to " + thousands(value);
    is_open = numbers.size() > kMaxValues && seen * kMaxRanges < num_examples * groups.size();
  }
  return groups;
}

// No groups if the property is the same everywhere or tells too many examples apart.
BreakdownFactor factor_of(const tasks::ExampleProperty& property,
                          const std::vector<bool>& correct) {
  std::map<std::string, BreakdownGroup> words;
  for (size_t i = 0; i < correct.size(); ++i) {
    BreakdownGroup& group = words[property.values.at(i)];
    add(group, {.name = "", .num_examples = 1, .num_correct = correct[i]});
  }
  Numbers numbers;
  bool are_numbers = true;
  for (auto& [text, group] : words) {
    group.name = text;
    const auto number = parsed_number<int64_t>(text);
    are_numbers = are_numbers && number;
    if (are_numbers) add(numbers[*number], group);
  }
  BreakdownFactor factor{.name = property.name, .groups = {}};
  if (words.size() < 2) return factor;
  if (are_numbers) {
    factor.groups = number_groups(numbers, correct.size());
  } else if (words.size() <= kMaxWords) {
    for (const auto& [text, group] : words) factor.groups.push_back(group);
  }
  return factor;
}

std::vector<BreakdownClass> classes_of(const std::vector<std::vector<int64_t>>& confusion,
                                       const std::vector<std::string>& names) {
  std::vector<BreakdownClass> classes;
  for (size_t c = 0; c < confusion.size(); ++c) {
    BreakdownClass& one = classes.emplace_back();
    one.name = names.empty() ? std::to_string(c) : names.at(c);
    one.num_correct = confusion[c][c];
    for (size_t other = 0; other < confusion.size(); ++other) {
      one.num_examples += confusion[c][other];
      one.num_predicted += confusion[other][c];
    }
  }
  return classes;
}

}  // namespace

double macro_f1(const std::vector<std::vector<int64_t>>& confusion) {
  double sum = 0;
  int64_t num_classes = 0;
  for (const BreakdownClass& one : classes_of(confusion, {})) {
    const int64_t labels_and_predictions = one.num_examples + one.num_predicted;
    if (labels_and_predictions == 0) continue;
    ++num_classes;
    sum += 2 * static_cast<double>(one.num_correct) / static_cast<double>(labels_and_predictions);
  }
  return num_classes > 0 ? sum / static_cast<double>(num_classes) : 0;
}

std::optional<double> area_under_roc(const EvaluationResult& result, const Split& split) {
  if (result.confusion.size() != 2 || result.predictions.empty()) return std::nullopt;
  if (!std::isfinite(result.summary.loss)) return std::nullopt;  // probabilities may be NaN
  struct Example {
    double score;  // probability of class 1
    int32_t label;
  };
  std::vector<Example> examples;
  for (const Prediction& p : result.predictions) {
    examples.push_back({p.label == 1 ? p.probability : 1 - p.probability,
                        split.label(static_cast<int64_t>(examples.size()))});
  }
  std::ranges::sort(examples, {}, &Example::score);
  double zeros_below = 0, ones = 0, won = 0;
  for (auto tied = examples.begin(); tied != examples.end();) {
    double tied_zeros = 0, tied_ones = 0;
    const double score = tied->score;
    for (; tied != examples.end() && tied->score == score; ++tied) {
      (tied->label == 1 ? tied_ones : tied_zeros) += 1;
    }
    won += tied_ones * (zeros_below + tied_zeros / 2);
    zeros_below += tied_zeros;
    ones += tied_ones;
  }
  if (zeros_below == 0 || ones == 0) return std::nullopt;
  return won / (zeros_below * ones);
}

at::Tensor balanced_weights(const Split& split, int64_t num_classes) {
  std::vector<int64_t> counts(static_cast<size_t>(num_classes));
  for (int64_t i = 0; i < split.size(); ++i) ++counts.at(static_cast<size_t>(split.label(i)));
  const auto num_present =
      static_cast<double>(num_classes - std::ranges::count(counts, int64_t{0}));
  const at::Tensor weights_C = at::ones({num_classes});
  for (int64_t c = 0; c < num_classes; ++c) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(c)]);
    if (count > 0) weights_C[c] = static_cast<double>(split.size()) / (num_present * count);
  }
  return weights_C;
}

std::vector<tasks::ExampleProperty> properties_of(const RunConfig& config, const tasks::Task& task,
                                                  const Dataset& dataset,
                                                  const std::string& split_name) {
  const Split split = config.split_of(task, dataset, split_name);
  tasks::ExampleProperty length{.name = "length", .values = {}};
  for (int64_t i = 0; i < split.size(); ++i) {
    int64_t tokens = 0;
    for (int64_t tower = 0; tower < task.shape().num_towers; ++tower) {
      tokens += split.sequence_length(i, tower);
    }
    length.values.push_back(std::to_string(tokens));
  }
  std::vector<tasks::ExampleProperty> properties = task.example_properties(dataset, split_name);
  properties.insert(properties.begin(), std::move(length));
  return properties;
}

BreakdownResult breakdown_of(const EvaluationResult& result, const RunConfig& config,
                             const tasks::Task& task, const Dataset& dataset,
                             const std::string& split_name) {
  const Split split = config.split_of(task, dataset, split_name);
  std::vector<bool> correct;
  for (const Prediction& prediction : result.predictions) {
    correct.push_back(prediction.label == split.label(static_cast<int64_t>(correct.size())));
  }
  BreakdownResult breakdown;
  breakdown.score = result.summary;
  breakdown.classes = classes_of(result.confusion, task.label_names(dataset));
  if (result.confusion.size() <= kMaxClassPairs) breakdown.confusion = result.confusion;
  breakdown.macro_f1 = macro_f1(result.confusion);
  breakdown.auc = area_under_roc(result, split);
  breakdown.set_correct(correct);
  for (const tasks::ExampleProperty& property : properties_of(config, task, dataset, split_name)) {
    BreakdownFactor factor = factor_of(property, correct);
    if (!factor.groups.empty()) breakdown.factors.push_back(std::move(factor));
  }
  return breakdown;
}

}  // namespace lra::training
