#include "tasks/split_checks.h"

#include <map>
#include <set>

#include "base/error.h"
#include "base/text_format.h"
#include "tasks/equal_examples.h"

namespace lra::tasks {
namespace {

[[noreturn]] void refuse(const Dataset& dataset, const std::string& what,
                         const std::string& expected) {
  throw Error({.where = dataset.folder(),
               .what = what,
               .expected = expected,
               .advice = "look for a copy, a link or a folder under another name"});
}

// Of a split: how many examples are also in an earlier one, how many occur in it with several
// labels, and how many labels there are.
struct Tally {
  int64_t copies = 0, contradictions = 0;
  size_t num_labels = 0;
};

Tally tally_of(const Split& split, const EqualExamples& equal, int64_t begin) {
  Tally tally;
  std::map<int64_t, std::set<int32_t>> labels_of;  // by the first example that is equal
  std::set<int32_t> labels;
  const auto first_of = [&](int64_t i) { return equal.first[static_cast<size_t>(begin + i)]; };
  for (int64_t i = 0; i < split.size(); ++i) {
    labels_of[first_of(i)].insert(split.label(i));
    labels.insert(split.label(i));
    if (first_of(i) < begin) ++tally.copies;
  }
  for (int64_t i = 0; i < split.size(); ++i) {
    if (labels_of[first_of(i)].size() > 1) ++tally.contradictions;
  }
  tally.num_labels = labels.size();
  return tally;
}

}  // namespace

void refuse_impossible_splits(const Dataset& dataset) {
  const EqualExamples equal = equal_examples(dataset);
  size_t trained_labels = 0;
  for (const auto& [name, begin, end] : equal.splits) {
    const bool is_train = name == std::string_view("train");
    const int64_t size = end - begin;
    const Tally tally = tally_of(dataset.split(name), equal, begin);
    if (is_train) trained_labels = tally.num_labels;
    if (size < kFewestToJudge) continue;
    const std::string of_all = " of the " + thousands(size) + " examples of " + name;
    if (2 * tally.copies > size) {
      refuse(dataset, thousands(tally.copies) + of_all + " are also in an earlier split",
             "splits of different examples");
    }
    if (2 * tally.contradictions > size) {
      refuse(dataset, thousands(tally.contradictions) + of_all + " occur with two labels",
             "one label for each example");
    }
    if (tally.num_labels == 1 && (trained_labels > 1 || is_train)) {
      refuse(dataset, "all examples of " + std::string(name) + " have one label",
             "examples of every class");
    }
  }
}

}  // namespace lra::tasks
