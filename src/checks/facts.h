// Checks and trivial classifiers that every task shares: rows of `lra data check`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checks/baseline.h"
#include "data/dataset.h"

namespace lra::checks {

// One row of `lra data check`: a fact, and whether it is correct.
struct Fact {
  std::string name, value;
  bool ok = true;
  std::string detail;  // "train example 17: label is 3, the expression evaluates to 5"
};

// "examples of train: 25,000"; not ok when `expected` names another count for the split. Imported
// data may differ from the `published` count, which `detail` then names: it may be a user's own.
void add_size_facts(const Dataset& dataset, const std::map<std::string, int64_t>& expected,
                    const std::map<std::string, int64_t>& published, std::vector<Fact>& facts);

// Share of each label per split, by its name in `names` if there are any; not ok when a label is
// num_classes or more, with the first one.
void add_label_facts(const Dataset& dataset, int64_t num_classes, std::vector<Fact>& facts,
                     const std::vector<std::string>& names = {});

// Range, mean, and a histogram of the sequence lengths per split ("0-499: 12, 500-999: 30").
// Not ok when a length is outside least..most, with the first one.
struct LengthBounds {
  int64_t least = 0, most = INT64_MAX, bin = 250;
};
void add_length_facts(const Dataset& dataset, const LengthBounds& bounds, std::vector<Fact>& facts);

// Examples whose stored tokens equal those of an earlier one, within each split and across splits.
// Not ok if there is one and `forbidden`; the first pair is named.
void add_duplicate_facts(const Dataset& dataset, bool forbidden, std::vector<Fact>& facts);

// The smallest one of a tie.
int32_t most_frequent_label(const Split& train, int64_t num_classes);

// Share of test examples that have the most frequent label of train.
// 0 when test is empty.
Baseline majority_baseline(const Split& train, const Split& test, int64_t num_classes);

}  // namespace lra::checks
