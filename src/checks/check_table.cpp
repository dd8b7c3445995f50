#include "checks/check_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/config.h"
#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "checks/overlap.h"
#include "checks/remarks.h"

namespace lra::checks {
namespace {

using Found = std::vector<std::string>;

constexpr int64_t kFewestToJudge = 20;  // examples of a split of which shares are judged

std::string of_all(int64_t count, const SplitStats& split) {
  return thousands(count) + " of the " + thousands(split.size()) + " examples of " + split.name;
}

void same_file(const SplitStats&, const SplitStats& split, const DataFacts&, Found& found) {
  if (split.same_file_as.empty()) return;
  found.push_back(split.name + " repeats examples of " + split.same_file_as + ", one by one");
}

// Says what `count` examples do if they are more than chance and `share` of the split explain.
void add_if_many(int64_t count, double share, const SplitStats& split, const std::string& what,
                 Found& found) {
  constexpr int64_t kByChance = 2;
  if (count > kByChance && split.exceeds(count, share))
    found.push_back(of_all(count, split) + what);
}

void copies(const SplitStats&, const SplitStats& split, const DataFacts&, Found& found) {
  add_if_many(split.num_copies, 0.01, split, " are also in an earlier split", found);
}

void contradictions(const SplitStats&, const SplitStats& split, const DataFacts&, Found& found) {
  add_if_many(split.num_contradictions, 0.01, split, " occur with two labels", found);
}

void overlap(const SplitStats&, const SplitStats& split, const DataFacts&, Found& found) {
  add_if_many(split.num_overlaps, 0.05, split,
              " share a quarter of their passages with one training example: are they windows of "
              "the same recording, or copies with changes?",
              found);
}

void groups(const SplitStats&, const SplitStats& split, const DataFacts& facts, Found& found) {
  constexpr double kLeastShare = 0.1;
  if (split.name != "test") return;
  for (const auto& [column, num_shared, num_test] : facts.groups) {
    const double share = static_cast<double>(num_shared) / static_cast<double>(num_test);
    if (share < kLeastShare) continue;
    found.push_back(thousands(num_shared) + " of the " + thousands(num_test) +
                    " test examples have a value of column " + in_quotes(column) +
                    " that training examples have: if they belong together, keep them in one "
                    "split with a column split");
  }
}

std::string class_name(size_t label, const DataFacts& facts) {
  return label < facts.label_names.size() ? in_quotes(facts.label_names[label])
                                          : std::to_string(label);
}

// None of seven expected examples by chance is one case in a thousand.
void classes(const SplitStats& train, const SplitStats& split, const DataFacts& facts,
             Found& found) {
  constexpr double kFewestExpected = 7;
  const auto num_labels =
      std::ranges::count_if(split.classes, [](int64_t count) { return count > 0; });
  if (num_labels == 1) {
    found.push_back("all examples of " + split.name + " have one label");
    return;
  }
  std::vector<std::string> missing;
  for (size_t label = 0; label < split.classes.size(); ++label) {
    const double share =
        static_cast<double>(train.classes[label]) / static_cast<double>(train.size());
    if (split.classes[label] > 0 || share * static_cast<double>(split.size()) < kFewestExpected) {
      continue;
    }
    missing.push_back(class_name(label, facts));
  }
  if (missing.empty()) return;
  found.push_back(
      split.name + " has no example of class " + missing[0] +
      (missing.size() > 1 ? " and " + std::to_string(missing.size() - 1) + " others" : "") +
      ", which train has");
}

void blank(const SplitStats&, const SplitStats& split, const DataFacts&, Found& found) {
  if (split.exceeds(split.num_empty, 0.01)) {
    found.push_back(of_all(split.num_empty, split) + " are empty");
  }
  int64_t num_constant = 0;
  for (const auto& [position, count] : split.runs.whole) {
    const auto inside = split.runs.inside.find(position);
    const bool is_usual = inside != split.runs.inside.end() && inside->second >= count;
    if (!is_usual) num_constant += count;
  }
  if (static_cast<double>(num_constant) <= 0.05 * static_cast<double>(split.num_sequences)) return;
  found.push_back(thousands(num_constant) + " of the " + thousands(split.num_sequences) +
                  " sequences of " + split.name +
                  " hold one and the same at all positions: were their files empty?");
}

// True if they differ by two of train's deviations or `most_apart`, by six standard errors, and by
// `least_apart`.
bool is_far(const Spread& train, const Spread& other, double least_apart,
            double most_apart = std::numeric_limits<double>::infinity()) {
  constexpr double kDeviations = 2, kErrors = 6;
  if (train.count == 0 || other.count == 0) return false;
  const double apart = std::abs(train.mean - other.mean);
  const double error = std::hypot(train.deviation() / std::sqrt(train.count),
                                  other.deviation() / std::sqrt(other.count));
  return apart > std::min(kDeviations * train.deviation(), most_apart) && apart > kErrors * error &&
         apart > least_apart;
}

void shift(const SplitStats& train, const SplitStats& split, const DataFacts&, Found& found) {
  const std::string unlike = "examples of " + split.name + " are unlike those of train: ";
  const auto add = [&](const std::string& what, const Spread& there, const Spread& here) {
    found.push_back(unlike + what + " is " + short_number(here.mean) + " on average instead of " +
                    short_number(there.mean));
  };
  if (is_far(train.lengths, split.lengths, 0.1 * train.lengths.mean)) {
    return add("the number of tokens", train.lengths, split.lengths);
  }
  for (size_t c = 0; c < train.channels.size(); ++c) {
    const ChannelStats &there = train.channels[c], &here = split.channels[c];
    const std::string channel = train.channels.size() > 1 ? " of channel " + std::to_string(c) : "";
    if (is_far(there.means, here.means, 0.5 * there.deviation())) {
      return add("the mean" + channel, there.means, here.means);
    }
    const Spread &usual = there.log_deviations, &other = here.log_deviations;
    if (is_far(usual, other, std::log(1.25), std::log(10))) {
      return found.push_back(unlike + "the deviation" + channel + " is " +
                             short_number(std::exp(other.mean - usual.mean)) + " times theirs");
    }
  }
}

// As many tokens of a further example of the same source are new as occur in one example of train
// (Good, 1953).
void unseen_ids(const SplitStats& train, const SplitStats& split, const DataFacts&, Found& found) {
  constexpr double kMostNew = 0.05, kTimesSingle = 2;
  double single = 0, all_train = 1, unseen = 0, all = 1;
  for (const auto& [id, stats] : train.ids) {
    all_train += static_cast<double>(stats.count);
    if (stats.example != IdStats::kSeveral) single += static_cast<double>(stats.count);
  }
  for (const auto& [id, stats] : split.ids) {
    all += static_cast<double>(stats.count);
    if (!train.ids.contains(id)) unseen += static_cast<double>(stats.count);
  }
  if (unseen / all <= kMostNew + kTimesSingle * single / all_train) return;
  found.push_back(percent(unseen / all, 0) + " of the tokens of " + split.name +
                  " are not in train: was it encoded in another way?");
}

void end_marks(const SplitStats& train, const SplitStats& split, const DataFacts&, Found& found) {
  constexpr double kUsual = 0.9, kRare = 0.1;
  const auto compare = [&](const auto& there, const auto& here, const char* where) {
    const auto share_of = [](const auto& counts, int32_t id, const SplitStats& of) {
      const auto known = counts.find(id);
      return known == counts.end()
                 ? 0
                 : static_cast<double>(known->second) / static_cast<double>(of.num_sequences);
    };
    for (const auto* counts : {&there, &here}) {
      for (const auto& [id, unused] : *counts) {
        const double usual = share_of(there, id, train), other = share_of(here, id, split);
        if (std::max(usual, other) < kUsual || std::min(usual, other) > kRare) continue;
        found.push_back("token " + std::to_string(id - 1) + " is the " + where + " of " +
                        percent(usual, 0) + " of the sequences of train and of " +
                        percent(other, 0) + " of those of " + split.name +
                        ": does it mark an end in one of them alone?");
        return;
      }
    }
  };
  compare(train.first, split.first, "first");
  compare(train.last, split.last, "last");
}

// Padded sequences have one length, and at their end a value over and over that is nowhere else.
void padding(const SplitStats&, const SplitStats& split, const DataFacts& facts, Found& found) {
  constexpr double kLeast = 0.25;
  if (split.shortest != split.longest || facts.stats.input == InputKind::kPixels) return;
  int64_t most = 0;
  for (const auto& [position, count] : split.runs.ends) most = std::max(most, count);
  const double share = static_cast<double>(most) / static_cast<double>(split.num_sequences);
  if (share < kLeast) return;
  found.push_back(percent(share, 0) + " of the sequences of " + split.name +
                  " end with the same at eight or more positions, which they have nowhere else: "
                  "is it padding?");
}

// Far from all other values, too often for an outlier and too rarely for the usual value of a
// channel of rare events. `others_end` is the end of the others' range.
bool stands_apart(const LeastValue& lowest, double others_end, int64_t num_values) {
  constexpr double kFarthest = 3, kLeastShare = 0.001, kMostShare = 0.5;
  constexpr int64_t kFewest = 10;
  const double range = others_end - lowest.next;
  const double share = static_cast<double>(lowest.count) / static_cast<double>(num_values);
  return range > 0 && lowest.next - lowest.value > kFarthest * range && lowest.count >= kFewest &&
         share >= kLeastShare && share <= kMostShare;
}

void sentinel(const SplitStats&, const SplitStats& split, const DataFacts& facts, Found& found) {
  constexpr double kRounding = 1e-4;
  if (facts.stats.input != InputKind::kValues) return;
  for (size_t c = 0; c < split.channels.size(); ++c) {
    const ChannelStats& channel = split.channels[c];
    if (channel.has_few_values()) continue;
    const bool is_low = stands_apart(channel.lowest, -channel.highest.value, channel.count);
    if (!is_low && !stands_apart(channel.highest, -channel.lowest.value, channel.count)) continue;
    const LeastValue& mark = is_low ? channel.lowest : channel.highest;
    const double value = facts.scaling.original(is_low ? mark.value : -mark.value, c);
    const double next = facts.scaling.original(is_low ? mark.next : -mark.next, c);
    if (std::abs(value) < kRounding * std::abs(next)) continue;  // 0: off, or none
    found.push_back(thousands(mark.count) + " values of " + split.name +
                    (split.channels.size() > 1 ? " in channel " + std::to_string(c) : "") +
                    " are " + short_number(value) +
                    ", far from all others: does it mark what is missing?");
    return;
  }
}

// Time runs along the axis on which neighbors are alike, and values far apart less so.
void axes(const SplitStats& train, const SplitStats& split, const DataFacts&, Found& found) {
  constexpr double kAlike = 0.5, kUnlike = 0.3, kDecay = 0.5;
  const std::string num_channels = std::to_string(split.channels.size());
  if (&split != &train) return;
  if (split.longest == 1 && split.channels.size() >= kFewestChannels) {
    found.push_back("every sequence is one position with " + num_channels +
                    " channels: is it a series of " + num_channels + " positions?");
  }
  if (split.axes.count < static_cast<double>(split.size())) return;
  double variance = 0;
  for (const ChannelStats& channel : split.channels) {
    variance += std::pow(channel.deviation(), 2) / static_cast<double>(split.channels.size());
  }
  const auto correlation = [&](double sum) { return 1 - sum / split.axes.count / (2 * variance); };
  const double channels = correlation(split.axes.channels);
  if (!(channels > kAlike) || correlation(split.axes.positions) > kUnlike * channels ||
      correlation(split.axes.far_channels) > kDecay * channels) {
    return;
  }
  found.push_back("sequences have " + thousands(split.longest) + " positions with " + num_channels +
                  " channels each, and neighboring channels are alike where positions are not: is "
                  "the array [N, C, L]? It is read as [N, L, C]; transpose it then");
}

void cut(const SplitStats& train, const SplitStats& split, const DataFacts& facts, Found& found) {
  constexpr double kMostCut = 0.5;
  if (&split != &train || !facts.is_own) return;
  const double share = static_cast<double>(split.num_cut) /
                       static_cast<double>(std::max<int64_t>(1, split.num_positions));
  if (share <= kMostCut) return;
  found.push_back("task.length=" + std::to_string(facts.stats.length) + " cuts off " +
                  percent(share) + " of all positions; the longest sequence has " +
                  thousands(split.longest));
}

void broken_text(const SplitStats&, const SplitStats& split, const DataFacts&, Found& found) {
  for (size_t t = 0; t < kNumTextTraits && !split.texts.empty(); ++t) {
    int64_t count = 0;
    for (const auto& of_class : split.texts) count += of_class[t];
    const double share = static_cast<double>(count) / static_cast<double>(split.num_sequences);
    if (share < kTextTraits[t].most) continue;
    found.push_back(percent(share, 0) + " of the texts of " + split.name + " " +
                    kTextTraits[t].what);
  }
}

// The share of the texts of each class that have a trait; classes of few texts say nothing.
void class_format(const SplitStats&, const SplitStats& split, const DataFacts& facts,
                  Found& found) {
  constexpr double kMostApart = 0.5;
  for (size_t t = 0; t < kNumTextTraits && !split.texts.empty(); ++t) {
    if (!kTextTraits[t].tells_classes) continue;
    std::vector<std::pair<double, size_t>> shares;
    for (size_t label = 0; label < split.classes.size(); ++label) {
      const int64_t count = split.classes[label] * facts.stats.num_towers;
      if (count < kFewestToJudge / 2) continue;
      shares.emplace_back(static_cast<double>(split.texts[label][t]) / static_cast<double>(count),
                          label);
    }
    if (shares.empty()) continue;
    const auto [least, most] = std::ranges::minmax(shares);
    if (most.first - least.first <= kMostApart) continue;
    found.push_back(percent(most.first, 0) + " of the texts of class " +
                    class_name(most.second, facts) + " of " + split.name + " " +
                    kTextTraits[t].what + ", and " + percent(least.first, 0) + " of class " +
                    class_name(least.second, facts));
  }
}

// Examples held out for validation belong to train.
void changed_benchmark(const SplitStats& train, const SplitStats& split, const DataFacts& facts,
                       Found& found) {
  if (&split != &train || !facts.published) return;
  const PublishedData& published = *facts.published;
  if (!facts.other_benchmark.empty()) found.push_back(facts.other_benchmark);
  const SplitCounts read = facts.counts;
  if (read == published.counts) {
    if (published.examples.empty() || facts.examples_hash == published.examples) return;
    found.push_back("not the published data, though of its size: the hash of the examples is " +
                    facts.examples_hash + " instead of " + std::string(published.examples));
  } else if (read != facts.wanted) {
    found.push_back("not the published data: " + text_of(read) + " examples instead of " +
                    text_of(published.counts));
  }
}

void remarks(const SplitStats& train, const SplitStats& split, const DataFacts& facts,
             Found& found) {
  constexpr int64_t kFewTests = 100;
  constexpr double kEasy = 0.9;
  if (split.name == "test" && split.size() < kFewTests) {
    // Half of the 95 % interval of an accuracy of 50 %.
    const double half = std::min(0.5, 0.98 / std::sqrt(static_cast<double>(split.size())));
    found.push_back("the test has " + std::to_string(split.size()) +
                    " examples: an accuracy on it is uncertain by " + percent(half, 0));
  }
  add_if_many(split.num_repeats, 0.01, split, " repeat an earlier one", found);
  if (&split != &train) return;
  for (const Baseline& baseline : facts.baselines) {
    if (baseline.accuracy <= kEasy) continue;
    found.push_back("an easy task: the baseline '" + baseline.name + "' is right on " +
                    percent(baseline.accuracy) + " of the test");
  }
  remark_channels(train, found);
  if (facts.is_own) remark_labels(train, facts.label_names, found);
}

constexpr std::array kChecks = {
    Check{"same_file", Level::kError, "Two splits of 20 examples or more are one file.",
          "look for a copy, a link or a folder under another name", true, same_file},
    Check{"copies", Level::kWarning,
          "More than 1 % of a split's examples are equal to examples of an earlier split; texts "
          "whatever their case and white space.",
          "remove them from one of the splits", true, copies},
    Check{"contradictions", Level::kWarning,
          "More than 1 % of a split's examples occur with two labels.",
          "keep one label of each example", true, contradictions},
    Check{
        "overlap", Level::kWarning,
        "More than 5 % of the test examples share a quarter of their rare passages (16 positions, "
        "or 8 words, equal neighbors counted once) with one training example, exactly. Sequences "
        "of fewer than 23 positions are not judged, and windows that were standardized one by one "
        "not found.",
        "split recordings or documents first, and cut windows from them afterwards", true, overlap},
    Check{"groups", Level::kWarning,
          "A column named user, subject, patient, session, recording, speaker or file has the same "
          "values in train and for a tenth of the test.",
          "keep what belongs together in one split, with a column split", false, groups},
    Check{"classes", Level::kWarning,
          "A split has one label only, or no example of a class of which seven are expected.",
          "shuffle the rows before they are split", true, classes},
    Check{"blank", Level::kWarning,
          "More than 1 % of a split's examples are empty, or 5 % of its sequences hold one value "
          "that is not usual in the others.",
          "look for empty files", true, blank},
    Check{"shift", Level::kWarning,
          "The lengths, or the mean or deviation of a channel, differ from train's by two "
          "deviations between training examples, or the deviation by ten times.",
          "scale and cut all splits in the same way", true, shift},
    Check{"unseen_ids", Level::kWarning, "More tokens are not in train than rare tokens explain.",
          "encode all splits with one vocabulary", true, unseen_ids},
    Check{"end_marks", Level::kWarning,
          "A token begins or ends nearly all sequences of one split, and hardly any of the other.",
          "encode all splits with the same special tokens", true, end_marks},
    Check{"padding", Level::kWarning,
          "All sequences have one length, and a quarter ends with one position over and over that "
          "they have nowhere else. Padding at the begin is not found.",
          "leave padding out, or give the lengths", true, padding},
    Check{"sentinel", Level::kWarning,
          "One value such as -999 recurs, far from all others of its channel, which are many, and "
          "is not 0. Two such values next to each other are not found.",
          "replace what is missing, or leave it out", true, sentinel},
    Check{"axes", Level::kWarning,
          "Neighboring channels are alike, and neighboring positions are not; or there is one "
          "position. Repeated spectra look the same.",
          "transpose the array to [examples, positions, channels], or accept it", true, axes},
    Check{"cut", Level::kWarning, "task.length cuts off more than half of all positions.",
          "raise task.length", false, cut},
    Check{"broken_text", Level::kWarning,
          "Texts hold U+FFFD, or are written as b'...', base64, names of files or numbers.",
          "decode the texts before the import", true, broken_text},
    Check{"class_format", Level::kWarning,
          "White space at an end of a text, or its line ends, tell its class.",
          "write the texts of all classes in the same way", true, class_format},
    Check{"changed_benchmark", Level::kWarning,
          "The examples are not those of the published benchmark: their number, or their hash.",
          "compare the files with the published ones (lra data fetch)", false, changed_benchmark},
    Check{
        "remarks", Level::kNote,
        "Few test examples, repeats, uneven classes, odd labels, constant channels, an easy task.",
        "", false, remarks}};

CheckLevel stored_level(Level level) {
  return level == Level::kNote ? CheckLevel::kNote : CheckLevel::kWarning;
}

void add_findings(const Check& check, const SplitStats& train, const SplitStats& split,
                  const DataFacts& facts, const std::string& folder,
                  std::vector<CheckFinding>& findings) {
  if (check.judges_shares && split.size() < kFewestToJudge) return;
  Found found;
  check.find(train, split, facts, found);
  if (check.level == Level::kError && !found.empty()) {
    throw Error({.where = folder, .what = found[0], .advice = std::string(check.advice)});
  }
  for (std::string& text : found) {
    findings.push_back({.check = std::string(check.name),
                        .level = stored_level(check.level),
                        .split = split.name,
                        .text = std::move(text)});
  }
}

}  // namespace

std::span<const Check> all_checks() { return kChecks; }

std::vector<CheckFinding> run(const Dataset& dataset, DataFacts facts) {
  std::vector<CheckFinding> findings;
  if (!dataset.has("train")) return findings;
  std::vector<SplitStats> splits;
  for (const char* name : kSplitNames) {
    if (!dataset.has(name)) continue;
    splits.push_back(split_stats(dataset, name, facts.stats));
  }
  relate(splits);
  SplitStats& last = splits.back();
  if (last.name == "test") {
    last.num_overlaps = count_overlaps(dataset, splits[0], last, facts.stats);
  }
  facts.counts = counts_of(dataset);
  if (facts.published && !facts.published->examples.empty() &&
      facts.counts == facts.published->counts) {
    facts.examples_hash = hash_of_examples(dataset);
  }
  for (const Check& check : kChecks) {
    for (const SplitStats& split : splits) {
      add_findings(check, splits[0], split, facts, dataset.folder(), findings);
    }
  }
  return findings;
}

std::vector<CheckFinding> run_on_settings(const Dataset& dataset, const DataFacts& facts) {
  std::vector<CheckFinding> findings;
  if (!facts.is_own || !dataset.has("train")) return findings;
  const SplitStats train = length_stats(dataset, "train", facts.stats);
  add_findings(*std::ranges::find(kChecks, "cut", &Check::name), train, train, facts,
               dataset.folder(), findings);
  return findings;
}

void refuse_unknown_checks(const std::vector<std::string>& names, const std::string& where) {
  std::vector<std::string> known;
  for (const Check& check : kChecks) {
    if (check.level == Level::kWarning) known.emplace_back(check.name);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw Error({.where = where,
                 .what = "no warning is named " + in_quotes(name),
                 .advice = suggestion(name, known)});
  }
}

std::vector<std::string> accept(const std::vector<std::string>& names,
                                std::vector<CheckFinding>& findings) {
  refuse_unknown_checks(names);
  std::vector<std::string> unused;
  for (const std::string& name : names) {
    bool is_found = false;
    for (CheckFinding& finding : findings) {
      if (finding.check != name || finding.level != CheckLevel::kWarning) continue;
      finding.accepted = is_found = true;
    }
    if (!is_found) unused.push_back(name);
  }
  return unused;
}

std::string text_of(const CheckFinding& finding) {
  return std::string(finding.accepted ? "accepted" : level_name(finding.level)) + ": " +
         finding.check + ": " + finding.text;
}

std::string documentation() {
  constexpr std::array kLevels = {"note", "warning", "error"};
  std::string text = "| name | level | what it finds | what to do |\n| --- | --- | --- | --- |\n";
  for (const Check& check : kChecks) {
    text += "| `" + std::string(check.name) + "` | " +
            kLevels.at(static_cast<size_t>(check.level)) + " | " + std::string(check.finds) +
            " | " + std::string(check.advice) + " |\n";
  }
  return text;
}

}  // namespace lra::checks
