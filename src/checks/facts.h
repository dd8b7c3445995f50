// Facts that every task shares: rows of `lra data check`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checks/baseline.h"
#include "data/dataset.h"

namespace lra::checks {

// One row of `lra data check`: a fact, and whether it is correct.
struct Fact {
  std::string name = {}, value = {};
  bool ok = true;
  std::string detail = {};  // "train example 17: label is 3, the expression evaluates to 5"
};

// The data that a task expects. A count or label that is not as expected is a fact that is not ok,
// with the first example of it.
struct ExpectedData {
  // Examples by split; none are published of a user's own data. Imported data may have other counts
  // than `sizes` where that is what was published: it may be a user's own.
  std::map<std::string, int64_t> sizes = {}, published = {};
  std::string_view published_examples = {};  // hash_of_examples(); empty: not known
  int64_t num_classes = 0;
  std::vector<std::string> label_names = {};
  // Lengths of sequences, and the bins of their histogram, in tokens.
  int64_t shortest = 0, longest = INT64_MAX, bin = 250;
  bool forbids_duplicates = false;
};

// Facts about each split: the number of examples, the share of each label, the range, mean and
// histogram of lengths ("0-499: 12, 500-999: 30"), and the examples whose stored tokens equal an
// earlier one's.
std::vector<Fact> standard_facts(const Dataset& dataset, const ExpectedData& expected);

// "12 of 13 right" on the examples of one split, by what problem_of(example) says, which several
// threads call: "" for one that is right. Not ok if one is not; the first is the detail.
Fact examples_fact(const std::string& name, const std::string& split_name, const Split& split,
                   const std::function<std::string(int64_t)>& problem_of);

// Documents that are cut at the length that the task reads, and empty ones; not ok if there are
// empty ones.
Fact documents_fact(const std::string& split_name, const Split& split, int64_t num_towers,
                    int64_t length);

// The sizes of a task's configuration.
template <typename Config>
std::map<std::string, int64_t> sizes_of(const Config& config) {
  std::map<std::string, int64_t> sizes = {{"train", config.num_train}, {"test", config.num_test}};
  if constexpr (requires { config.num_val; }) sizes["val"] = config.num_val;
  return sizes;
}

}  // namespace lra::checks
