#include "checks/facts.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/text_format.h"
#include "checks/equal_examples.h"
#include "data/first_seen.h"

namespace lra::checks {
namespace {

std::string example_name(const std::string& split, int64_t index) {
  return split + " example " + std::to_string(index);
}

Fact length_fact(const std::string& name, const Split& split, int64_t num_towers,
                 const ExpectedData& bounds) {
  Fact fact{.name = "length of " + name};
  int64_t low = INT64_MAX, high = 0, sum = 0;
  std::map<int64_t, int64_t> histogram;  // by bin
  for (int64_t i = 0; i < split.size(); ++i) {
    for (int64_t tower = 0; tower < num_towers; ++tower) {
      const int64_t length = split.sequence_length(i, tower);
      low = std::min(low, length);
      high = std::max(high, length);
      sum += length;
      ++histogram[length / bounds.bin];
      if (fact.ok && (length < bounds.shortest || length > bounds.longest)) {
        fact.ok = false;
        fact.detail = example_name(name, i) + " has " + std::to_string(length) +
                      " tokens, outside " + std::to_string(bounds.shortest) + " to " +
                      std::to_string(bounds.longest);
      }
    }
  }
  if (split.size() == 0) {
    fact.value = "no examples";
    return fact;
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(split.size() * num_towers);
  fact.value = std::to_string(low) + " to " + std::to_string(high) + ", mean " + fixed(mean, 1);
  if (!fact.ok) return fact;
  for (const auto& [bin, count] : histogram) {
    fact.detail += (fact.detail.empty() ? "" : ", ") + std::to_string(bin * bounds.bin) + "-" +
                   std::to_string((bin + 1) * bounds.bin - 1) + ": " + std::to_string(count);
  }
  return fact;
}

void add_size_facts(const Dataset& dataset, const ExpectedData& data, std::vector<Fact>& facts) {
  const auto &expected = data.sizes, &published = data.published;
  const bool is_imported = dataset.manifest().source != "generated";
  for (const char* name : kSplitNames) {
    const auto wanted = expected.find(name);
    if (!dataset.has(name) && wanted == expected.end()) continue;
    const int64_t size = dataset.has(name) ? dataset.split(name).size() : 0;
    Fact fact{.name = std::string("examples of ") + name,
              .value = thousands(size),
              .ok = wanted == expected.end() || wanted->second == size};
    const auto known = published.find(name);
    if (!fact.ok) {
      fact.ok = is_imported && known != published.end() && known->second == wanted->second;
      if (!fact.ok) {
        fact.detail = "expected " + thousands(wanted->second) + "; --set task.num_... changes that";
      }
    }
    if (fact.ok && known != published.end() && known->second != size) {
      fact.detail = "not the published size (" + thousands(known->second) + ")";
    }
    facts.push_back(std::move(fact));
  }
}

void add_label_facts(const Dataset& dataset, const ExpectedData& expected,
                     std::vector<Fact>& facts) {
  const int64_t num_classes = expected.num_classes;
  const std::vector<std::string>& names = expected.label_names;
  for (const char* name : kSplitNames) {
    if (!dataset.has(name)) continue;
    const Split split = dataset.split(name);
    Fact fact{.name = std::string("labels of ") + name};
    const std::vector<int64_t> counts = label_counts(split, num_classes);
    for (size_t label = 0; label < counts.size(); ++label) {
      const double share = static_cast<double>(counts[label]) /
                           static_cast<double>(std::max<int64_t>(1, split.size()));
      fact.value += (label == 0 ? "" : ", ") +
                    (names.empty() ? std::to_string(label) : names.at(label)) + ": " +
                    percent(share, 1);
    }
    for (int64_t i = 0; fact.ok && i < split.size(); ++i) {
      if (split.label(i) < num_classes) continue;
      fact.ok = false;
      fact.detail = example_name(name, i) + " has label " + std::to_string(split.label(i)) +
                    ", expected 0 to " + std::to_string(num_classes - 1);
    }
    facts.push_back(std::move(fact));
  }
}

void add_duplicate_facts(const Dataset& dataset, bool forbidden, std::vector<Fact>& facts) {
  FirstSeen seen;
  std::vector<std::pair<std::string, int64_t>> begins;  // of the splits, in one numbering
  const auto name_of = [&](int64_t number) {
    size_t s = begins.size() - 1;
    while (number < begins[s].second) --s;
    return example_name(begins[s].first, number - begins[s].second);
  };
  Fact across{.name = "duplicates across splits"};
  int64_t number = 0, num_across = 0;
  for (const char* name : kSplitNames) {
    if (!dataset.has(name)) continue;
    begins.emplace_back(name, number);
    Fact within{.name = std::string("duplicates within ") + name};
    int64_t num_within = 0;
    for (const Hash128& hash : example_hashes(dataset.split(name), dataset.manifest().num_towers)) {
      const int64_t earlier = seen.add(hash, number).value_or(number);
      const bool is_within = earlier >= begins.back().second;
      Fact& fact = is_within ? within : across;
      if (earlier != number) {
        ++(is_within ? num_within : num_across);
        if (fact.detail.empty()) fact.detail = name_of(number) + " equals " + name_of(earlier);
      }
      ++number;
    }
    within.value = thousands(num_within);
    within.ok = num_within == 0 || !forbidden;
    facts.push_back(std::move(within));
  }
  across.value = thousands(num_across);
  across.ok = num_across == 0 || !forbidden;
  facts.push_back(std::move(across));
}

}  // namespace

std::vector<Fact> standard_facts(const Dataset& dataset, const ExpectedData& expected) {
  std::vector<Fact> facts;
  add_size_facts(dataset, expected, facts);
  add_label_facts(dataset, expected, facts);
  for (const char* name : kSplitNames) {
    if (!dataset.has(name)) continue;
    facts.push_back(
        length_fact(name, dataset.split(name), dataset.manifest().num_towers, expected));
  }
  add_duplicate_facts(dataset, expected.forbids_duplicates, facts);
  return facts;
}

Fact examples_fact(const std::string& name, const std::string& split_name, const Split& split,
                   const std::function<std::string(int64_t)>& problem_of) {
  const std::vector<std::string> problems = parallel_map(split.size(), 256, problem_of);
  const auto wrong = std::ranges::find_if_not(problems, &std::string::empty);
  const int64_t num_right = std::ranges::count_if(problems, &std::string::empty);
  Fact fact{.name = name,
            .value = thousands(num_right) + " of " + thousands(split.size()) + " right",
            .ok = wrong == problems.end()};
  if (!fact.ok) fact.detail = example_name(split_name, wrong - problems.begin()) + ": " + *wrong;
  return fact;
}

Fact documents_fact(const std::string& split_name, const Split& split, int64_t num_towers,
                    int64_t length) {
  Fact fact{.name = "documents of " + split_name};
  int64_t num_empty = 0, num_cut = 0;
  for (int64_t i = 0; i < split.size(); ++i) {
    for (int64_t tower = 0; tower < num_towers; ++tower) {
      const int64_t size = split.sequence_length(i, tower);
      num_cut += size > length;
      if (size > 0) continue;
      if (num_empty++ == 0) fact.detail = example_name(split_name, i) + " has an empty text";
    }
  }
  fact.ok = num_empty == 0;
  fact.value = thousands(num_cut) + " of " + thousands(num_towers * split.size()) +
               " longer than " + std::to_string(length) + ", " + thousands(num_empty) + " empty";
  return fact;
}

}  // namespace lra::checks
