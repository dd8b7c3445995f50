#include "training/loop/breakdown.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "base/text_format.h"
#include "training/loop/class_metrics.h"

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

std::optional<int64_t> number_of(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

using Numbers = std::map<int64_t, BreakdownGroup>;

std::vector<BreakdownGroup> ranges_of(const Numbers& numbers, size_t num_examples) {
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
    is_open = seen * kMaxRanges < num_examples * groups.size();
  }
  return groups;
}

// No groups if the property is the same everywhere or tells too many examples apart.
BreakdownFactor factor_of(const tasks::ExampleProperty& property,
                          const std::vector<bool>& correct) {
  Numbers numbers;
  std::map<std::string, BreakdownGroup> words;
  bool are_numbers = true;
  for (size_t i = 0; i < correct.size(); ++i) {
    const std::string& text = property.values.at(i);
    const BreakdownGroup one{.name = text, .num_examples = 1, .num_correct = correct[i]};
    const auto number = number_of(text);
    are_numbers = are_numbers && number;
    if (are_numbers) add(numbers[*number], one);
    add(words[text], one);
  }
  BreakdownFactor factor{.name = property.name, .groups = {}};
  if (words.size() < 2) return factor;
  if (are_numbers && numbers.size() > kMaxValues) {
    factor.groups = ranges_of(numbers, correct.size());
  } else if (are_numbers) {
    for (auto& [value, group] : numbers) {
      factor.groups.push_back(group);
      factor.groups.back().name = thousands(value);
    }
  } else if (words.size() <= kMaxWords) {
    for (auto& [text, group] : words) {
      factor.groups.push_back(group);
      factor.groups.back().name = text;
    }
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
