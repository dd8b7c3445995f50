#include "tasks/split_checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text_format.h"
#include "checks/equal_examples.h"
#include "tasks/constant_examples.h"
#include "tasks/near_copies.h"
#include "tasks/own/custom.h"
#include "tasks/split_shift.h"
#include "tasks/task.h"
#include "tasks/text_checks.h"

namespace lra::tasks {
namespace {

constexpr double kDoubtedShareOfNear = 0.05;
constexpr double kDoubtedShare = 0.01, kRefusedShare = 0.05, kRefusedShareOfShort = 0.5;
constexpr int64_t kFewestTokens = 100;  // of an example that does not equal another by chance

// A number of examples of a split, and how many of them are too long for a coincidence.
struct Count {
  int64_t all = 0, longer = 0;
  void add(bool is_long) {
    ++all;
    longer += is_long;
  }
};

struct SplitTally {
  std::string name;
  int64_t size = 0;
  Count copies;          // equal to an example of an earlier split
  Count repeats;         // equal to an earlier example of this split
  Count contradictions;  // equal to an example with another label, in any split
  Count same_texts;      // pairs of a text and itself
  int64_t num_blank = 0;
  std::vector<int64_t> labels;  // examples of each class
  ConstantExamples constant;

  std::string of_all() const { return " of the " + thousands(size) + " examples of " + name; }
  bool exceeds(int64_t count, double share) const {
    return static_cast<double>(count) > share * static_cast<double>(size);
  }
};

// The inputs of all checks.
struct Evidence {
  const Dataset& dataset;
  int64_t num_classes;
  std::vector<SplitTally> splits;  // those of train, val and test that there are, in this order
  using Doubts = std::vector<std::string>;

  // The training split that another one is compared with; null for itself.
  const SplitTally* train_for(const SplitTally& split) const {
    const SplitTally& first = splits.front();
    return first.name == "train" && &first != &split ? &first : nullptr;
  }
  static constexpr const char* kLookForCopy =
      "look for a copy, a link or a folder under another name";
  [[noreturn]] void refuse(const std::string& what, const std::string& expected,
                           const std::string& advice = kLookForCopy) const {
    throw Error({.where = dataset.folder(), .what = what, .expected = expected, .advice = advice});
  }
  void judge_share(const SplitTally& split, const Count& count, const std::string& what,
                   const std::string& expected, Doubts& doubts,
                   const std::string& advice = kLookForCopy) const {
    const std::string text = thousands(count.all) + split.of_all() + " " + what;
    if (split.exceeds(count.all, kRefusedShareOfShort) ||
        split.exceeds(count.longer, kRefusedShare)) {
      refuse(text, expected, advice);
    }
    if (split.exceeds(count.all, kDoubtedShare)) doubts.push_back(text);
  }
};

using Doubts = Evidence::Doubts;

// Equal examples of which one has another label than the first.
std::vector<bool> contradictory(const Dataset& dataset, const checks::EqualExamples& equal) {
  std::vector<int32_t> label_of(equal.first.size());
  std::vector<bool> result(equal.first.size());  // by the first of the equal ones
  for (const auto& [name, begin, end] : equal.splits) {
    const Split split = dataset.split(name);
    for (int64_t i = begin; i < end; ++i) {
      const auto first = static_cast<size_t>(equal.first[static_cast<size_t>(i)]);
      const int32_t label = split.label(i - begin);
      if (static_cast<int64_t>(first) == i) {
        label_of[first] = label;
      } else if (label_of[first] != label) {
        result[first] = true;
      }
    }
  }
  return result;
}

// The two sequences of a pair are one and the same.
bool is_pair_of_equals(const Split& split, int64_t example, int64_t token_bytes) {
  if (token_bytes == 1) {
    return std::ranges::equal(split.stored_bytes(example, 0), split.stored_bytes(example, 1));
  }
  std::array<std::vector<int32_t>, 2> words;
  for (size_t tower = 0; tower < 2; ++tower) {
    const auto number = static_cast<int64_t>(tower);
    words.at(tower).resize(
        static_cast<size_t>(split.sequence_length(example, number) * split.words_per_token()));
    split.read_tokens(example, number, words.at(tower));
  }
  return words[0] == words[1];
}

SplitTally tally_of(const Dataset& dataset, const checks::EqualExamples& equal,
                    const checks::EqualExamples::Range& range,
                    const std::vector<bool>& contradicted, const ConstantExamples& constant,
                    int64_t num_classes) {
  const Split split = dataset.split(range.name);
  const int64_t num_towers = dataset.manifest().num_towers;
  SplitTally tally;
  tally.name = range.name;
  tally.size = split.size();
  tally.labels.resize(static_cast<size_t>(num_classes));
  tally.num_blank = count_blank(split, dataset.manifest());
  tally.constant = constant;
  for (int64_t i = 0; i < split.size(); ++i) {
    const int64_t first = equal.first[static_cast<size_t>(range.begin + i)];
    int64_t length = 0;
    for (int64_t tower = 0; tower < num_towers; ++tower) length += split.sequence_length(i, tower);
    const bool is_long = length >= kFewestTokens;
    if (split.label(i) < num_classes) ++tally.labels[static_cast<size_t>(split.label(i))];
    // These are equal for a reason of their own, which has a doubt of its own.
    if (!constant.is_constant.empty() && constant.is_constant[static_cast<size_t>(i)]) continue;
    if (first < range.begin) {
      tally.copies.add(is_long);
    } else if (first < range.begin + i) {
      tally.repeats.add(is_long);
    }
    if (contradicted[static_cast<size_t>(first)]) tally.contradictions.add(is_long);
    if (num_towers == 2 && is_pair_of_equals(split, i, dataset.manifest().token_bytes)) {
      tally.same_texts.add(is_long);
    }
  }
  return tally;
}

// Files that are equal byte by byte, however few examples they hold.
void check_shards(const Evidence& evidence, Doubts&) {
  std::map<std::string, std::string> seen;  // hash -> split
  for (const auto& [name, shards] : evidence.dataset.manifest().splits) {
    for (const ShardInfo& shard : shards) {
      const auto [other, is_new] = seen.emplace(shard.xxh3, name);
      if (is_new || shard.num_examples == 0) continue;
      evidence.refuse(name + " repeats examples of " + other->second + ", one by one",
                      "splits of different examples");
    }
  }
}

void check_copies(const Evidence& evidence, Doubts& doubts) {
  std::string expected = "splits of different examples";
  const auto train = std::ranges::find(evidence.splits, "train", &SplitTally::name);
  if (train != evidence.splits.end() && train->exceeds(train->repeats.all, kDoubtedShare)) {
    expected += " (train repeats " + thousands(train->repeats.all) +
                " of its own: was a file read beside a copy of it?)";
  }
  for (const SplitTally& split : evidence.splits) {
    evidence.judge_share(split, split.copies, "are also in an earlier split", expected, doubts);
  }
}

// Copies with small changes, of train and, in test, of val; pairs of the latter two may have a text
// in common. Pictures of Pathfinder and expressions are alike by their nature.
void check_near_copies(const Evidence& evidence, Doubts& doubts) {
  const Manifest& manifest = evidence.dataset.manifest();
  if (!is_own(manifest) && !is_text(manifest) && manifest.task != "image") return;
  for (auto reference = evidence.splits.begin(); reference != evidence.splits.end(); ++reference) {
    if (manifest.num_towers == 2 && reference->name != "train") continue;
    std::vector<std::string> later;
    for (auto split = reference + 1; split != evidence.splits.end(); ++split) {
      if (!split->exceeds(split->copies.all, kDoubtedShare)) later.push_back(split->name);
    }
    if (later.empty()) continue;
    const std::vector<NearCopies> all = near_copies(evidence.dataset, reference->name, later);
    for (size_t i = 0; i < later.size(); ++i) {
      if (all[i].num_judged < kFewestToJudge) continue;
      const double share =
          static_cast<double>(all[i].num_near) / static_cast<double>(all[i].num_judged);
      if (share <= kDoubtedShareOfNear) continue;
      doubts.push_back(percent(share, 0) + " of the examples of " + later[i] +
                       " share half of their passages with one of " + reference->name +
                       ": are they copies with small changes, or parts of the same?");
    }
  }
}

// Repeated examples of one split leak nothing, and somebody may want them.
void check_repeats(const Evidence& evidence, Doubts& doubts) {
  for (const SplitTally& split : evidence.splits) {
    evidence.judge_share(split, {.all = split.repeats.all, .longer = 0}, "repeat an earlier one",
                         "different examples", doubts);
  }
}

void check_contradictions(const Evidence& evidence, Doubts& doubts) {
  for (const SplitTally& split : evidence.splits) {
    evidence.judge_share(split, split.contradictions, "occur with two labels",
                         "one label for each example", doubts);
  }
}

void check_same_texts(const Evidence& evidence, Doubts& doubts) {
  for (const SplitTally& split : evidence.splits) {
    evidence.judge_share(split, {.all = split.same_texts.all, .longer = 0},
                         "pair a text with itself", "two texts in each", doubts,
                         "look for a column or file that stands in both places");
  }
}

void check_constant(const Evidence& evidence, Doubts& doubts) {
  for (const SplitTally& split : evidence.splits) {
    if (split.constant.are_nearly_all) {
      evidence.refuse(split.constant.doubt, "examples that differ",
                      "look for empty files, and for values around an offset that is too large for "
                      "float32");
    }
    if (!split.constant.doubt.empty()) doubts.push_back(split.constant.doubt);
  }
}

void check_blank(const Evidence& evidence, Doubts& doubts) {
  for (const SplitTally& split : evidence.splits) {
    if (split.num_blank == 0) continue;
    const std::string text = thousands(split.num_blank) + split.of_all() + " are empty";
    if (split.exceeds(split.num_blank, kDoubtedShare)) {
      evidence.refuse(text, "a text or picture in each", "look for empty files");
    }
    doubts.push_back(text);
  }
}

void check_one_label(const Evidence& evidence, Doubts&) {
  const auto num_labels = [](const SplitTally& split) {
    return std::ranges::count_if(split.labels, [](int64_t count) { return count > 0; });
  };
  for (const SplitTally& split : evidence.splits) {
    const SplitTally* train = evidence.train_for(split);
    if (num_labels(split) != 1 || (train && num_labels(*train) == 1)) continue;
    evidence.refuse("all examples of " + split.name + " have one label", "examples of every class",
                    "look for a class that is missing, and for rows sorted by class before they "
                    "were split");
  }
}

// The examples of a class that a split of this size would have: with train's share of the class,
// and in train itself with equal shares.
double expected_count(const Evidence& evidence, const SplitTally& split, size_t label) {
  const SplitTally* train = evidence.train_for(split);
  const double share =
      train ? static_cast<double>(train->labels[label]) / static_cast<double>(train->size)
            : 1 / static_cast<double>(evidence.num_classes);
  return share * static_cast<double>(split.size);
}

// A class with less than a twentieth of its share. Seven examples are expected at least: none of
// them by chance is one case in a thousand. The classes of own data may have any shares in train,
// but a test without one says nothing about it.
void check_missing_classes(const Evidence& evidence, Doubts& doubts) {
  for (const SplitTally& split : evidence.splits) {
    if (is_own(evidence.dataset.manifest()) && !evidence.train_for(split)) continue;
    std::string first;
    int num_missing = 0;
    for (size_t label = 0; label < split.labels.size(); ++label) {
      const double expected = expected_count(evidence, split, label);
      const bool is_untested =
          is_own(evidence.dataset.manifest()) && split.name == "test" && split.labels[label] == 0;
      if (expected < 7 && !is_untested) continue;
      if (20 * static_cast<double>(split.labels[label]) >= expected) continue;
      if (num_missing++ > 0) continue;
      first = "class " + std::to_string(label) + " has " + thousands(split.labels[label]) +
              split.of_all() + ", and its share is " + fixed(expected, expected < 7 ? 1 : 0);
    }
    if (num_missing > 1) first += "; " + std::to_string(num_missing) + " classes are that few";
    if (num_missing > 0) doubts.push_back(first);
  }
}

// Tasks of two classes are balanced. The ten values of ListOps are not: 4 to 1 at most. Own data
// may have any classes.
void check_balance(const Evidence& evidence, Doubts& doubts) {
  if (is_own(evidence.dataset.manifest())) return;
  const double most = evidence.num_classes == 2 ? 2 : 8;
  for (const SplitTally& split : evidence.splits) {
    const auto [least, largest] = std::ranges::minmax(split.labels);
    const auto difference = static_cast<double>(largest - least);
    const bool by_chance = difference < 4 * std::sqrt(static_cast<double>(largest));
    if (by_chance || static_cast<double>(largest) <= most * static_cast<double>(least)) continue;
    doubts.push_back("the classes of " + split.name + " are uneven: " + thousands(largest) +
                     " examples of one, " + thousands(least) + " of another");
  }
}

void check_shift(const Evidence& evidence, Doubts& doubts) {
  for (std::string& doubt : doubts_of_shift(evidence.dataset)) doubts.push_back(std::move(doubt));
}

// The checks: each throws for impossible data and adds a sentence for doubtful data. All but the
// last two see only splits of kFewestToJudge examples or more.
constexpr void (*kChecks[])(const Evidence&, Doubts&) = {
    check_copies,          check_near_copies, check_repeats, check_contradictions,
    check_same_texts,      check_constant,    check_blank,   check_one_label,
    check_missing_classes, check_balance,     check_shift,   check_shards};

Evidence evidence_of(const Dataset& dataset, int64_t num_classes) {
  Evidence evidence{.dataset = dataset, .num_classes = num_classes, .splits = {}};
  const bool are_texts = is_text(dataset.manifest());
  const checks::EqualExamples equal = checks::equal_examples(
      dataset, are_texts ? checks::Equality::kLetters : checks::Equality::kTokens);
  const std::vector<bool> contradicted = contradictory(dataset, equal);
  auto constant = constant_examples(dataset);
  for (const checks::EqualExamples::Range& range : equal.splits) {
    evidence.splits.push_back(
        tally_of(dataset, equal, range, contradicted, constant[range.name], num_classes));
  }
  std::erase_if(evidence.splits, [](const SplitTally& s) { return s.size < kFewestToJudge; });
  return evidence;
}

// Doubts of the import itself, and many examples that it left out: the archive of Pathfinder lacks
// one image of 200,000.
void judge_notes(const Dataset& dataset, Doubts& doubts) {
  int64_t num_examples = 0;
  for (const auto& [name, unused] : dataset.manifest().splits) {
    num_examples += dataset.split(name).size();
  }
  std::vector<std::string> others;
  for (const std::string& note : dataset.manifest().notes) {
    const bool is_doubt = note.starts_with(kDoubtNote);
    (is_doubt ? doubts : others).push_back(is_doubt ? note.substr(kDoubtNote.size()) : note);
  }
  const auto num_others = static_cast<int64_t>(others.size());
  if (100 * num_others <= num_examples) return;
  doubts.push_back(thousands(num_others) + " notes of the import: " + others.front());
}

}  // namespace

std::vector<std::string> judge_data(const Task& task, const Dataset& dataset) {
  Doubts doubts;
  judge_notes(dataset, doubts);
  const Evidence evidence = evidence_of(dataset, task.shape().num_classes);
  for (const auto check : kChecks) check(evidence, doubts);
  if (is_text(dataset.manifest())) judge_texts(dataset, doubts);
  if (is_own_text(dataset.manifest())) doubt_own_texts(dataset, doubts);
  for (std::string& doubt : task.judge(dataset)) doubts.push_back(std::move(doubt));
  return doubts;
}

}  // namespace lra::tasks
