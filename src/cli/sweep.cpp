#include "cli/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/command_text.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "base/quoted.h"
#include "base/rng.h"
#include "base/text_format.h"
#include "cli/command.h"
#include "report/lists.h"

namespace lra::cli {
namespace {

constexpr uint64_t kMaxTries = 10000;
constexpr double kMaxWhole = 9007199254740992;  // 2^53: up to here a double holds whole numbers
constexpr const char* kRangeExample = R"([0.001, 0.01], "1e-4:1e-2:log", "0:0.3" or "16:256")";

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The bounds of "LOW:HIGH" or "LOW:HIGH:log"; nothing for other text.
std::optional<Varied> range_of(std::string text) {
  const bool is_log = text.ends_with(":log");
  if (is_log) text.erase(text.rfind(':'));
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto low = number_of(text.substr(0, colon)), high = number_of(text.substr(colon + 1));
  if (!low || !high) return std::nullopt;
  return Varied{.low = *low,
                .high = *high,
                .is_range = true,
                .is_log = is_log,
                .is_whole = text.find_first_not_of("-0123456789:") == std::string::npos};
}

// Settings that change what the validation accuracy is measured on, or of what.
constexpr std::string_view kSettingsOfScore[] = {"train.objective",     "train.mask_fraction",
                                                 "train.masked_loss",   "train.eval_examples",
                                                 "train.test_examples", "train.token_order"};

// Without the quotes of a string.
std::string text_of(const ConfigValue& value) {
  const std::string text = setting_text(value);
  return std::holds_alternative<std::string>(value.value) ? text.substr(1, text.size() - 2) : text;
}

// A list, or a range as text: "1e-4:1e-2:log" is drawn log-uniformly, "0:0.3" uniformly, and
// "16:256" gives whole numbers. `name` is the whole name of the setting. Throws lra::Error for
// anything else.
Varied varied_of(const std::string& name, const ConfigValue& value) {
  if (name.starts_with("task.")) {
    refuse(value.where, "a sweep compares settings on the same data; " + name + " changes the data",
           "settings of train, model, mixer or groups", "make a suite for each");
  }
  if (std::ranges::count(kSettingsOfScore, name) > 0) {
    refuse(value.where, name + " changes what the score measures; a sweep compares equal scores",
           "settings of training that leave the score alone", "make a suite for each");
  }
  if (const auto* list = std::get_if<ConfigList>(&value.value)) {
    std::set<std::string> known;
    for (const ConfigValue& item : *list) {
      if (!known.insert(text_of(item)).second)
        refuse(value.where, name + " has the value " + text_of(item) + " twice", "each once");
    }
    if (list->empty()) refuse(value.where, name + " is an empty list", kRangeExample);
    return {.name = name, .where = value.where, .values = *list};
  }
  const auto* text = std::get_if<std::string>(&value.value);
  std::optional<Varied> range = text ? range_of(*text) : std::nullopt;
  if (!range) {
    refuse(value.where, name + " has one value, and nothing to compare", kRangeExample,
           "a setting of every run belongs in [set]");
  }
  if (range->is_log && range->low <= 0) {
    refuse(value.where, name + " is drawn log-uniformly from " + *text + ", which has no logarithm",
           "a lower end above 0");
  }
  if (range->is_whole && std::max(-range->low, range->high) > kMaxWhole) {
    refuse(value.where, name + " is drawn from " + *text, "whole numbers of at most 2^53");
  }
  if (range->low >= range->high) {
    refuse(value.where, name + " is drawn from " + *text, "a lower end below the upper one");
  }
  range->name = name;
  range->where = value.where;
  return *range;
}

void flatten(const ConfigTable& table, const std::string& prefix, std::vector<Varied>& varied) {
  for (const auto& [key, value] : table) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (const ConfigTable* inner = value.as_table()) {
      flatten(*inner, name, varied);
    } else if (prefix.empty()) {
      refuse(value.where, "sweep has " + in_quotes(key) + " outside of a section",
             "tries, seed, halving, or settings in sections as [sweep.train]");
    } else {
      varied.push_back(varied_of(name, value));
    }
  }
}

uint64_t num_combinations(const Sweep& sweep) {
  uint64_t count = 1;
  for (const Varied& v : sweep.varied) {
    if (__builtin_mul_overflow(count, v.values.size(), &count))
      refuse(v.where, "the lists have over 2^64 combinations", "fewer settings that vary");
  }
  return count;
}

bool has_range(const Sweep& sweep) { return std::ranges::any_of(sweep.varied, &Varied::is_range); }

uint64_t key_of(const Sweep& sweep, const std::string& name) {
  return hash64(name, static_cast<uint64_t>(sweep.settings.seed));
}

// Three digits, so that the setting of a try can be read and typed.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::strtod(text, nullptr);
}

ConfigValue drawn(const Sweep& sweep, const Varied& v, uint32_t index) {
  RandomStream random(key_of(sweep, v.name), index);
  if (!v.is_range) return v.values[random.below(static_cast<uint32_t>(v.values.size()))];
  const double u = random.uniform();
  if (v.is_whole && !v.is_log) {
    const double whole = v.low + std::floor(u * (v.high - v.low + 1));
    return {static_cast<int64_t>(std::min(whole, v.high)), v.where};
  }
  const double value =
      v.is_log ? v.low * std::pow(v.high / v.low, u) : v.low + u * (v.high - v.low);
  if (v.is_whole) return {static_cast<int64_t>(std::llround(value)), v.where};
  return {std::clamp(rounded(value), v.low, v.high), v.where};
}

// Sets "train.learning_rate" in its section.
void set_by_name(ConfigTable& table, const std::string& name, const ConfigValue& value) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return table.set(name, value);
  set_by_name(table.table(name.substr(0, dot)), name.substr(dot + 1), value);
}

// A name depends on the settings alone, so that the runs of a sweep that is extended are found
// again.
std::string name_of(const std::string& text) {
  constexpr size_t kMaxBytes = 60;
  std::string name = text;
  std::erase(name, ' ');
  const bool is_plain = shell_word(name) == name && name.find_first_of("/:@%") == std::string::npos;
  return is_plain && name.size() <= kMaxBytes ? name : to_hex(hash64(text));
}

Try try_of(const Sweep& sweep, const std::vector<ConfigValue>& values) {
  Try one;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = sweep.varied[i].name;
    set_by_name(one.values, name, values[i]);
    one.text += (i == 0 ? "" : ", ") + name.substr(name.find('.') + 1) + "=" + text_of(values[i]);
  }
  one.name = name_of(one.text);
  return one;
}

// Combination `index` of the lists; the last setting changes fastest.
Try combination(const Sweep& sweep, uint64_t index) {
  std::vector<ConfigValue> values(sweep.varied.size());
  for (size_t i = values.size(); i-- > 0; index /= sweep.varied[i].values.size()) {
    values[i] = sweep.varied[i].values[index % sweep.varied[i].values.size()];
  }
  return try_of(sweep, values);
}

// All of them, or as many as are asked for, chosen by the seed.
std::vector<Try> combinations(const Sweep& sweep) {
  const uint64_t total = num_combinations(sweep);
  const auto wanted = static_cast<uint64_t>(sweep.settings.tries);
  const Permutation order(total, key_of(sweep, "combinations"));
  std::set<uint64_t> chosen;
  for (uint64_t i = 0; i < (wanted > 0 ? wanted : total); ++i) chosen.insert(order(i));
  std::vector<Try> tries;
  for (const uint64_t index : chosen) tries.push_back(combination(sweep, index));
  return tries;
}

std::vector<Try> draws(const Sweep& sweep) {
  const auto wanted = static_cast<size_t>(sweep.settings.tries);
  std::vector<Try> tries;
  std::set<std::string> known;
  for (uint32_t index = 0; tries.size() < wanted; ++index) {
    if (index == 100 * wanted) {
      refuse("sweep.tries", "is " + std::to_string(wanted) + "; the ranges have fewer settings",
             "at most " + std::to_string(tries.size()), "widen the ranges");
    }
    std::vector<ConfigValue> values;
    for (const Varied& v : sweep.varied) values.push_back(drawn(sweep, v, index));
    Try one = try_of(sweep, values);
    if (known.insert(one.text).second) tries.push_back(std::move(one));
  }
  return tries;
}

void check_tries(const Sweep& sweep, const std::string& file) {
  const int64_t tries = sweep.settings.tries;
  if (has_range(sweep)) {
    if (tries > 0) return;
    refuse(file + ": sweep", "draws from a range, and does not say how often", "tries = 8",
           "'lra tune' takes it as --tries 8");
  }
  const uint64_t total = num_combinations(sweep);
  if (total > kMaxTries && tries == 0) {
    refuse(file + ": sweep", "the lists have over " + thousands(kMaxTries) + " combinations",
           "tries, as many of them as are to be trained");
  }
  if (static_cast<uint64_t>(tries) > total) {
    refuse(file + ": sweep.tries",
           "is " + std::to_string(tries) + "; the lists have " + std::to_string(total) +
               " combinations",
           "at most that many");
  }
}

}  // namespace

bool is_varied(const ConfigValue& value) {
  if (std::holds_alternative<ConfigList>(value.value)) return true;
  const auto* text = std::get_if<std::string>(&value.value);
  return text && range_of(*text);
}

Sweep read_sweep(ConfigTable table, const std::string& file) {
  Sweep sweep;
  ConfigTable settings;
  for (const char* key : {"tries", "seed", "halving"}) {
    if (const ConfigValue* found = table.find(key)) settings.set(key, *found);
    table.erase(key);
  }
  sweep.settings = read_config<SweepSettings>(settings, "sweep");
  if (sweep.settings.halving == 1) {
    refuse(file + ": sweep.halving", "is 1: every setting would go on", "2 or more, or 0 for none");
  }
  flatten(table, "", sweep.varied);
  if (sweep.varied.empty()) {
    refuse(file + ": sweep", "varies no setting",
           "for example [sweep.train] learning_rate = [0.001, 0.01]");
  }
  check_tries(sweep, file);
  return sweep;
}

std::vector<Try> tries_of(const Sweep& sweep) {
  return has_range(sweep) ? draws(sweep) : combinations(sweep);
}

std::vector<std::string> varied_names(const Sweep& sweep) {
  return report::mapped(sweep.varied, &Varied::name);
}

size_t kept_of(size_t tries, int64_t halving) {
  const auto divisor = static_cast<size_t>(halving);
  return (tries + divisor - 1) / divisor;
}

std::vector<int64_t> milestones(int64_t steps, int64_t eval_every, int64_t halving, size_t tries) {
  std::set<int64_t> found;
  if (halving == 0) return {};
  double part = static_cast<double>(steps);
  for (size_t kept = tries; kept > 1; kept = kept_of(kept, halving)) {
    part /= static_cast<double>(halving);
    const auto step =
        static_cast<int64_t>(std::ceil(part / static_cast<double>(eval_every))) * eval_every;
    if (step < steps) found.insert(step);
  }
  return {found.begin(), found.end()};
}

double score_of_seeds(const std::vector<std::optional<double>>& accuracies) {
  double sum = 0;
  int count = 0, diverged = 0;
  for (const std::optional<double>& accuracy : accuracies) {
    sum += accuracy.value_or(0);
    ++(accuracy ? count : diverged);
  }
  return (count > 0 ? sum / count : 0) - 2 * diverged;
}

std::vector<size_t> best_of(std::vector<size_t> entrants, const std::vector<double>& scores,
                            size_t keep) {
  std::ranges::sort(entrants);
  std::ranges::stable_sort(entrants, std::greater<>(), [&](size_t i) { return scores[i]; });
  entrants.resize(std::min(keep, entrants.size()));
  return entrants;
}

}  // namespace lra::cli
