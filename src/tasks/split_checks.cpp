#include "tasks/split_checks.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include "base/error.h"
#include "base/text_format.h"
#include "tasks/equal_examples.h"

namespace lra::tasks {
namespace {

constexpr int64_t kBlankOneIn = 100;

[[noreturn]] void refuse(const Dataset& dataset, const std::string& what,
                         const std::string& expected,
                         const std::string& advice =
                             "look for a copy, a link or a folder under "
                             "another name") {
  throw Error({.where = dataset.folder(), .what = what, .expected = expected, .advice = advice});
}

// Counts of a split: examples that are also in an earlier one, that come again in it, that occur in
// it with several labels, and the number of labels.
struct Tally {
  int64_t copies = 0, repeats = 0, contradictions = 0;
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
    if (first_of(i) < begin) {
      ++tally.copies;
    } else if (first_of(i) < begin + i) {
      ++tally.repeats;
    }
  }
  for (int64_t i = 0; i < split.size(); ++i) {
    if (labels_of[first_of(i)].size() > 1) ++tally.contradictions;
  }
  tally.num_labels = labels.size();
  return tally;
}

// A user's own data, of which nobody else knows what is odd in it.
bool is_own(const Manifest& manifest) { return manifest.task == "custom"; }

// Texts alone are stored as bytes that their ids are one above.
bool is_text(const Manifest& manifest) {
  return manifest.token_bytes == 1 && manifest.token_offset == 1 && !is_own(manifest);
}

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// `stored` is a text, of bytes, or an image. A single symbol may be all that there is to an
// example.
bool is_blank(std::span<const uint8_t> stored, bool as_text) {
  if (as_text) return std::ranges::all_of(stored, is_space);
  const auto is_first = [&](uint8_t value) { return value == stored[0]; };
  return stored.size() != 1 && std::ranges::all_of(stored, is_first);
}

// How a text was written, which says nothing of what it says.
struct Trait {
  const char* name;  // of texts
  bool (*has)(std::span<const uint8_t> text);
};
constexpr std::array kTraits = {
    Trait{"begin with white space",
          [](std::span<const uint8_t> text) { return !text.empty() && is_space(text.front()); }},
    Trait{"end in white space",
          [](std::span<const uint8_t> text) { return !text.empty() && is_space(text.back()); }},
    Trait{"hold a line end",
          [](std::span<const uint8_t> text) { return std::ranges::count(text, '\n') > 0; }},
    Trait{"hold a tab",
          [](std::span<const uint8_t> text) { return std::ranges::count(text, '\t') > 0; }}};

// Texts of one class in one split.
struct TextGroup {
  int64_t num_texts = 0;
  std::array<int64_t, kTraits.size()> num_with{};
};

std::map<std::string, TextGroup> text_groups(const Dataset& dataset) {
  std::map<std::string, TextGroup> groups;
  for (const auto& [name, unused] : dataset.manifest().splits) {
    const Split split = dataset.split(name);
    for (int64_t i = 0; i < split.size(); ++i) {
      TextGroup& group = groups["class " + std::to_string(split.label(i)) + " of " + name];
      for (int64_t tower = 0; tower < dataset.manifest().num_towers; ++tower) {
        ++group.num_texts;
        for (size_t t = 0; t < kTraits.size(); ++t) {
          group.num_with[t] += kTraits[t].has(split.stored_bytes(i, tower));
        }
      }
    }
  }
  return groups;
}

// A trait that one class has and another has not tells a model the label; one that a split has
// alone makes a test of it.
void refuse_texts_written_unlike(const Dataset& dataset) {
  constexpr double kMostApart = 0.25;  // of real classes and splits 0.04 at most
  const auto groups = text_groups(dataset);
  for (size_t t = 0; t < kTraits.size(); ++t) {
    std::map<double, std::string> shares;
    for (const auto& [name, group] : groups) {
      if (group.num_texts < kFewestToJudge / 2) continue;
      shares[static_cast<double>(group.num_with[t]) / static_cast<double>(group.num_texts)] = name;
    }
    if (shares.empty() || shares.rbegin()->first - shares.begin()->first <= kMostApart) continue;
    const auto share = [](const auto& s) { return percent(s.first) + " of " + s.second; };
    refuse(dataset,
           std::string("texts that ") + kTraits[t].name + ": " + share(*shares.rbegin()) + ", " +
               share(*shares.begin()),
           "texts of all classes and splits written alike",
           "write all files in the same way, or none anew");
  }
}

}  // namespace

int64_t count_blank(const Split& split, const Manifest& manifest) {
  if (manifest.token_bytes != 1 || is_own(manifest)) return 0;
  int64_t num_blank = 0;
  for (int64_t i = 0; i < split.size(); ++i) {
    bool has_blank = false;
    for (int64_t tower = 0; tower < manifest.num_towers; ++tower) {
      has_blank = has_blank || is_blank(split.stored_bytes(i, tower), is_text(manifest));
    }
    num_blank += has_blank;
  }
  return num_blank;
}

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
    if (2 * tally.repeats > size) {
      refuse(dataset, thousands(tally.repeats) + of_all + " repeat an earlier one",
             "different examples");
    }
    if (2 * tally.contradictions > size) {
      refuse(dataset, thousands(tally.contradictions) + of_all + " occur with two labels",
             "one label for each example");
    }
    const int64_t num_blank = count_blank(dataset.split(name), dataset.manifest());
    if (kBlankOneIn * num_blank > size) {
      refuse(dataset, thousands(num_blank) + of_all + " are empty", "a text or picture in each",
             "look for empty files");
    }
    if (tally.num_labels == 1 && (trained_labels > 1 || is_train)) {
      refuse(dataset, "all examples of " + std::string(name) + " have one label",
             "examples of every class");
    }
  }
  if (is_text(dataset.manifest())) refuse_texts_written_unlike(dataset);
}

}  // namespace lra::tasks
