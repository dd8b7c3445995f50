#include "tasks/split_checks.h"

#include <map>
#include <set>

#include "base/error.h"
#include "base/text_format.h"
#include "tasks/example_hashes.h"

namespace lra::tasks {
namespace {

constexpr const char* kJudgedSplits[] = {"train", "val", "test"};

[[noreturn]] void refuse(const Dataset& dataset, const std::string& what,
                         const std::string& expected) {
  throw Error({.where = dataset.folder(),
               .what = what,
               .expected = expected,
               .advice = "look for a copy, a link or a folder under another name"});
}

std::string of_split(const char* name, int64_t count, int64_t all) {
  return thousands(count) + " of the " + thousands(all) + " examples of " + name;
}

}  // namespace

void refuse_impossible_splits(const Dataset& dataset) {
  std::map<Hash128, std::set<int32_t>> seen;  // labels by example, of the splits before
  size_t num_labels = 0;                      // of train
  for (const char* name : kJudgedSplits) {
    if (!dataset.has(name)) continue;
    const Split split = dataset.split(name);
    const std::vector<Hash128> hashes = example_hashes(split, dataset.manifest().num_towers);
    std::map<Hash128, std::set<int32_t>> own;
    std::set<int32_t> labels;
    int64_t copies = 0, contradictions = 0;
    for (int64_t i = 0; i < split.size(); ++i) {
      const Hash128& hash = hashes[static_cast<size_t>(i)];
      own[hash].insert(split.label(i));
      labels.insert(split.label(i));
      if (seen.contains(hash)) ++copies;
    }
    for (const Hash128& hash : hashes) contradictions += own[hash].size() > 1 ? 1 : 0;
    if (split.size() >= kFewestToJudge) {
      if (2 * copies > split.size()) {
        refuse(dataset, of_split(name, copies, split.size()) + " are also in an earlier split",
               "splits of different examples");
      }
      if (2 * contradictions > split.size()) {
        refuse(dataset, of_split(name, contradictions, split.size()) + " occur with two labels",
               "one label for each example");
      }
      if (labels.size() == 1 && (num_labels > 1 || name == kJudgedSplits[0])) {
        refuse(dataset, "all examples of " + std::string(name) + " have one label",
               "examples of every class");
      }
    }
    if (name == kJudgedSplits[0]) num_labels = labels.size();
    seen.merge(own);
  }
}

}  // namespace lra::tasks
