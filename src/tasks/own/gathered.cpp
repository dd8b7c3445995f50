#include "tasks/own/gathered.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "base/quoted.h"
#include "base/rng.h"
#include "base/text_format.h"
#include "data/files.h"
#include "data/text_lines.h"
#include "io/input_file.h"
#include "io/mapped_file.h"
#include "io/progress.h"
#include "tasks/own/channel_tally.h"
#include "tasks/own/class_names.h"
#include "tasks/own/column_names.h"
#include "tasks/own/input_kind.h"
#include "tasks/own/npz.h"
#include "tasks/own/own_files.h"
#include "tasks/own/precision.h"
#include "tasks/own/row_counter.h"
#include "tasks/own/row_steps.h"
#include "tasks/own/tables.h"

namespace lra::tasks {
namespace {

constexpr size_t kDrawnPart = 10;  // one in ten

// Takes examples from the readers one by one, and compares each with the first.
class Gatherer {
 public:
  Gatherer(const CustomConfig& config, const Schema& schema)
      : schema_(schema), kind_(config.input) {
    gathered_.config = config;
  }

  void add(const std::string& where, OwnExample&& example, const std::string& file,
           const std::string& file_split);
  bool is_empty() const { return gathered_.examples.empty(); }
  GatheredExamples finish();

 private:
  void name_labels();
  void tell_splits_apart();
  void draw_splits();
  void refuse_untrained_labels(const std::set<std::string>& drawn) const;
  bool have_one_label_each(const std::string& name) const;
  void doubt_shared_ids();
  void state_facts();
  void state_reading(const std::set<std::string>& drawn);
  void standardize();
  void doubt_lost_marks(const std::vector<ChannelTally>& train);

  const Schema& schema_;
  GatheredExamples gathered_;
  InputKind kind_;
  RowCounter counter_;
  PrecisionLoss precision_;
  std::string splits_named_by_;
  std::map<std::string, std::string> first_of_label_;  // where it stands, of kMaxClasses labels
};

void Gatherer::add(const std::string& where, OwnExample&& example, const std::string& file,
                   const std::string& file_split) {
  example.label = class_name(example.label, where);
  if (!example.split.empty()) {
    const std::string split = split_of_name(example.split);
    if (split.empty()) {
      refuse_data(where, "the split is " + in_quotes(example.split), "train, val or test");
    }
    example.split = split;
    splits_named_by_ = schema_.split_name().empty()
                           ? "named by the arrays"
                           : "named by the column " + in_quotes(schema_.split_name());
  } else {
    example.split = file_split;
    if (!file_split.empty()) splits_named_by_ = "named by the files";
  }
  const size_t count = example.sequences.size();
  if (!gathered_.examples.empty() && count != gathered_.examples[0].sequences.size()) {
    refuse_data(where, "has a different number of sequences from the first example", "as many");
  }
  for (size_t i = 0; i < count; ++i) {
    const bool has_name = !schema_.is_wide() && i < schema_.sequence_names().size();
    kind_.add(where, has_name ? schema_.sequence_names()[i] : "", example.sequences[i]);
    const int64_t channels = example.sequences[i].channels;
    precision_.add(example.sequences[i], channels == 0 ? kind_.list_channels() : channels);
    example.sequences[i].lost = std::vector<float>();  // frees its memory
  }
  gathered_.config.towers = static_cast<int64_t>(count);
  if (count == 1) counter_.add(example.sequences[0].numbers, file);
  if (static_cast<int64_t>(first_of_label_.size()) <= CustomConfig::kMaxClasses) {
    first_of_label_.try_emplace(example.label, where);
  }
  gathered_.examples.push_back(std::move(example));
}

void Gatherer::name_labels() {
  std::set<std::string> names;
  for (const OwnExample& example : gathered_.examples) {
    names.insert(example.label);
    if (static_cast<int64_t>(names.size()) <= CustomConfig::kMaxClasses) continue;
    refuse_data("labels",
                "there are over " + thousands(CustomConfig::kMaxClasses) + " different ones",
                "the names or numbers of classes", "name their column with --set task.label=NAME");
  }
  gathered_.label_names = sorted_class_names(names);
  gathered_.doubts = doubts_of_class_names(gathered_.label_names);
  gathered_.doubts.insert(gathered_.doubts.end(), kind_.doubts().begin(), kind_.doubts().end());
}

void Gatherer::draw_splits() {
  auto& splits = gathered_.splits;
  const std::vector<size_t> all = splits["train"];
  const Permutation order(all.size(), derive_key(static_cast<uint64_t>(gathered_.config.split_seed),
                                                 RandomUse::kSplit));
  std::vector<bool> is_taken(all.size());
  size_t next = 0;
  for (const char* name : {"val", "test"}) {
    if (splits.contains(name)) continue;
    std::vector<size_t>& part = splits[name];
    for (size_t i = 0; i < std::max<size_t>(1, all.size() / kDrawnPart); ++i) {
      const size_t place = order(next++);
      is_taken[place] = true;
      part.push_back(all[place]);
    }
    std::ranges::sort(part);
  }
  splits["train"].clear();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_taken[i]) splits["train"].push_back(all[i]);
  }
}

void Gatherer::tell_splits_apart() {
  auto& splits = gathered_.splits;
  for (size_t i = 0; i < gathered_.examples.size(); ++i) {
    const std::string& split = gathered_.examples[i].split;
    splits[split.empty() ? "train" : split].push_back(i);
  }
  if (splits["train"].empty()) {
    refuse_data("split train", "has no example", "examples to train on",
                "name a file train..., or write train in the column split");
  }
  constexpr size_t kFewestToDraw = 10;
  if (splits["train"].size() < kFewestToDraw && splits.size() < 3) {
    refuse_data("split train", "has " + std::to_string(splits["train"].size()) + " examples",
                std::to_string(kFewestToDraw) + " or more to draw other splits from",
                "name a file train..., or add a column split");
  }
  std::set<std::string> drawn = {"val", "test"};
  for (const auto& [name, unused] : splits) drawn.erase(name);
  if (!drawn.empty()) draw_splits();
  refuse_untrained_labels(drawn);
  state_reading(drawn);
}

void Gatherer::refuse_untrained_labels(const std::set<std::string>& drawn) const {
  std::set<std::string> trained;
  for (const size_t i : gathered_.splits.at("train")) trained.insert(gathered_.examples[i].label);
  for (const auto& [name, places] : gathered_.splits) {
    for (const size_t i : places) {
      const std::string& label = gathered_.examples[i].label;
      if (trained.contains(label)) continue;
      refuse_data(drawn.contains(name) ? "split " + name : first_of_label_.at(label),
                  "has the label " + in_quotes(label) + ", which train does not have",
                  "one of " + quoted_list({trained.begin(), trained.end()}),
                  drawn.contains(name)
                      ? "to draw other splits add --set task.split_seed=1"
                      : "write labels the same way in all files, or leave out those not in train");
    }
  }
}

// A position that is as good as constant says nothing; one that counts the rows may say the class.
void Gatherer::state_reading(const std::set<std::string>& drawn) {
  auto& reading = gathered_.reading;
  const std::vector<std::string>& names = schema_.sequence_names();
  reading["columns"] = quoted_list(names, 4) + (schema_.is_wide() ? ", a position each" : "");
  reading["labels"] = in_quotes(schema_.label_name());
  reading["ignored"] = quoted_list(schema_.ignored_names(), 8);
  std::string& splits = reading["splits"];
  splits = splits_named_by_;
  for (const std::string& name : drawn) {
    splits += (splits.empty() ? "" : "; ") + name + " was drawn from train by task.split_seed=" +
              std::to_string(gathered_.config.split_seed);
  }
  const auto place = counter_.place();
  if (!place) return;
  gathered_.doubts.push_back(
      (schema_.is_wide() ? "column " + in_quotes(names.at(*place))
                         : "position " + std::to_string(*place)) +
      " counts the examples: is it the number of the row? Remove it from the sequences");
}

// True if a column says who or what an example is of, whatever its name: several examples have the
// same value, and then nearly always the same label. Labels that change a few times along the
// numbers are made from these (a rating), and names that say so, or that name finer classes, are
// left alone.
bool Gatherer::have_one_label_each(const std::string& name) const {
  constexpr double kFewestOfEach = 3, kOneLabel = 0.95;
  constexpr std::array kMadeFromLabels = {"label",  "class",   "categ", "rating",  "score",
                                          "grade",  "topic",   "genre", "intent",  "emotion",
                                          "target", "species", "type",  "diagnos", "level"};
  const std::string plain = plain_name(name);
  if (std::ranges::any_of(kMadeFromLabels,
                          [&](const char* word) { return plain.find(word) != plain.npos; })) {
    return false;
  }
  std::map<uint64_t, std::map<std::string, size_t>> labels;
  size_t num_examples = 0, num_usual = 0, num_changes = 0;
  const uint32_t column = schema_.number_of_ignored(name);
  for (const OwnExample& example : gathered_.examples) {
    const auto id = example.id_in(column);
    if (!id) continue;
    ++labels[*id][example.label];
    ++num_examples;
  }
  std::string last;
  for (const auto& [id, counts] : labels) {
    const auto usual =
        std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    num_usual += usual->second;
    num_changes += usual->first != last;
    last = usual->first;
  }
  const auto all = static_cast<double>(num_examples);
  return all >= kFewestOfEach * static_cast<double>(labels.size()) &&
         static_cast<double>(num_usual) >= kOneLabel * all &&
         num_changes > 2 * gathered_.label_names.size();
}

// Rows of one patient or film are alike: those of test were seen if others are in train.
void Gatherer::doubt_shared_ids() {
  constexpr size_t kFewestIds = 10;                    // fewer are categories
  constexpr double kLeastShare = 0.1, kMostIds = 0.8;  // of the rows of test; for a row of train
  const std::vector<size_t>&train = gathered_.splits["train"], &test = gathered_.splits["test"];
  for (const std::string& name : schema_.ignored_names()) {
    const uint32_t column = schema_.number_of_ignored(name);
    const auto id_of = [&](size_t i) { return gathered_.examples[i].id_in(column); };
    std::set<uint64_t> trained;
    size_t num_train = 0, num_shared = 0;
    for (const size_t i : train) {
      const auto id = id_of(i);
      if (!id) continue;
      trained.insert(*id);
      ++num_train;
    }
    // No more values than classes: the classes once more, under another name.
    if (trained.size() < std::max(kFewestIds, gathered_.label_names.size() + 1)) continue;
    if (static_cast<double>(trained.size()) > kMostIds * static_cast<double>(num_train)) continue;
    const bool is_named = Schema::has_name_of_id(name);
    if (!is_named && !have_one_label_each(name)) continue;
    for (const size_t i : test) {
      const auto id = id_of(i);
      num_shared += id && trained.contains(*id);
    }
    if (num_shared == 0 ||
        static_cast<double>(num_shared) < kLeastShare * static_cast<double>(test.size()))
      continue;
    gathered_.doubts.push_back(
        "column " + in_quotes(name) + " is ignored, and " +
        thousands(static_cast<int64_t>(num_shared)) + " of the " +
        thousands(static_cast<int64_t>(test.size())) +
        " test examples have a value there that training examples have" +
        (is_named ? ": if they belong together, keep them"
                  : ", and one label with them: does it say who or what was recorded? Keep these "
                    "together then,") +
        " in one split, with a column split");
  }
}

void Gatherer::state_facts() {
  CustomConfig& config = gathered_.config;
  if (config.input == "tokens" && kind_.channels() != 1) {
    refuse_data("task.input",
                "is tokens, and positions have " + std::to_string(kind_.channels()) + " numbers",
                "values");
  }
  config.channels = config.input == "values" ? kind_.channels() : 1;
  if (config.channels > 256) {
    refuse_data("channels", "there are " + std::to_string(config.channels), "at most 256");
  }
  config.shortest = INT64_MAX;
  float largest = 0;
  for (const OwnExample& example : gathered_.examples) {
    for (const OwnSequence& sequence : example.sequences) {
      const size_t size = config.input == "text"
                              ? sequence.text.size()
                              : sequence.numbers.size() / static_cast<size_t>(config.channels);
      config.shortest = std::min(config.shortest, static_cast<int64_t>(size));
      config.longest = std::max(config.longest, static_cast<int64_t>(size));
      if (config.input != "tokens") continue;
      largest = std::max(largest, *std::ranges::max_element(sequence.numbers));
    }
  }
  constexpr int64_t kFewPositions = 8, kMostOfStep = 64;
  if (schema_.is_wide() && config.longest < kFewPositions) {
    gathered_.doubts.push_back(
        "sequences have " + std::to_string(config.longest) +
        " positions, the columns of a row: is a row one step of a longer sequence?");
  } else if (config.channels == 1 && config.input != "text" && config.towers == 1 &&
             config.longest <= kMostOfStep && may_be_steps(gathered_.examples)) {
    gathered_.doubts.push_back(
        "consecutive rows are nearly alike, have one label in long runs and hold " +
        std::to_string(config.longest) +
        " unrelated numbers: is a row one step of a longer sequence?");
  }
  config.length = config.longest;
  // 0 is padding.
  config.vocabulary = config.input == "text"     ? 257
                      : config.input == "tokens" ? static_cast<int64_t>(largest) + 2
                                                 : 0;
  config.classes = static_cast<int64_t>(gathered_.label_names.size());
  config.num_train = static_cast<int64_t>(gathered_.splits["train"].size());
  config.num_val = static_cast<int64_t>(gathered_.splits["val"].size());
  config.num_test = static_cast<int64_t>(gathered_.splits["test"].size());
}

// Beside a mark of 1e20 all other standardized values are one and the same, and can no longer be
// told from those of two kinds.
void Gatherer::doubt_lost_marks(const std::vector<ChannelTally>& train) {
  for (size_t c = 0; c < train.size(); ++c) {
    const LeastValue* const mark = mark_of(train[c]);
    if (!mark) continue;
    const bool is_low = mark == &train[c].lowest;
    const auto standardized = [&](double value) {
      return static_cast<float>((value - gathered_.means[c]) / gathered_.deviations[c]);
    };
    const float least = standardized(is_low ? mark->next : train[c].lowest.value);
    const float largest = standardized(is_low ? -train[c].highest.value : -mark->next);
    if (least != largest) continue;  // doubts_of_values() sees it
    gathered_.doubts.push_back(
        doubt_of_mark(train[c], "train", of_channel(c, gathered_.config.channels)));
    return;
  }
}

void Gatherer::standardize() {
  const auto channels = static_cast<size_t>(gathered_.config.channels);
  std::vector<ChannelTally> tally(channels);
  std::vector<double> squares(channels);
  const auto visit = [&](const auto& places, auto&& act) {
    for (const size_t i : places) {
      for (OwnSequence& sequence : gathered_.examples[i].sequences) {
        for (size_t k = 0; k < sequence.numbers.size(); ++k) act(sequence.numbers[k], k % channels);
      }
    }
  };
  const std::vector<size_t>& train = gathered_.splits["train"];
  visit(train, [&](float value, size_t channel) { tally[channel].add(value); });
  for (const ChannelTally& channel : tally) gathered_.means.push_back(channel.mean());
  visit(train, [&](float value, size_t channel) {
    squares[channel] += std::pow(value - gathered_.means[channel], 2);
  });
  for (const double square : squares) {
    const double deviation = std::sqrt(square / tally[0].count);
    gathered_.deviations.push_back(deviation > 0 ? deviation : 1);  // a channel that never varies
  }
  doubt_lost_marks(tally);
  for (const auto& [name, places] : gathered_.splits) {
    visit(places, [&](float& value, size_t channel) {
      value =
          static_cast<float>((value - gathered_.means[channel]) / gathered_.deviations[channel]);
    });
  }
}

GatheredExamples Gatherer::finish() {
  schema_.refuse_unread_splits();
  gathered_.config.input = kind_.settle(gathered_.examples);
  name_labels();
  tell_splits_apart();
  doubt_shared_ids();
  state_facts();
  if (gathered_.config.input == "values") {
    if (const std::string doubt = precision_.doubt(); !doubt.empty()) {
      gathered_.doubts.push_back(doubt);
    }
    if (gathered_.config.standardize) standardize();
  }
  return std::move(gathered_);
}

// Hashes the bytes of each file, in order.
std::string hash_of_files(const std::vector<std::string>& files) {
  Hasher hasher;
  for (const std::string& file : files) {
    hasher.append(to_hex(hash128(MappedFile(file).bytes())) + "\n");
  }
  return to_hex(hasher.digest());
}

}  // namespace

GatheredExamples gather_examples(const std::vector<std::string>& sources,
                                 const CustomConfig& config, Progress& progress) {
  std::vector<std::string> files = own_files(sources);
  // The training split says which columns there are.
  std::ranges::stable_partition(
      files, [](const std::string& file) { return split_of_file(file) == "train"; });
  Schema schema({config.sequences, config.label, config.split});
  Gatherer gatherer(config, schema);
  const bool is_alone = files.size() == 1;
  for (const std::string& file : files) {
    const std::string split = is_alone ? "" : split_of_file(file);
    const auto take = [&](const std::string& where, OwnExample&& example) {
      if (!is_alone && split.empty() && example.split.empty()) {
        refuse_data(file, "does not say which split it is", "train, val or test in its name",
                    "rename it, add a column split, or import one file alone");
      }
      gatherer.add(where, std::move(example), file, split);
      progress.update(1);
    };
    has_ending(file, ".npz") ? read_npz(file, schema, take) : read_table(file, schema, take);
  }
  if (gatherer.is_empty()) {
    refuse_data(quoted_list(files), "holds no example", "examples with labels");
  }
  GatheredExamples gathered = gatherer.finish();
  gathered.source_hash = hash_of_files(files);
  const std::string alone = is_alone ? split_of_file(files[0]) : "";
  const bool is_cut_up = gathered.reading.at("splits").find("val was drawn") != std::string::npos &&
                         gathered.reading.at("splits").find("test was drawn") != std::string::npos;
  if (is_cut_up && (alone == "val" || alone == "test")) {
    gathered.doubts.push_back(files[0] +
                              " is the only file, and was split into train, val and test");
  }
  return gathered;
}

}  // namespace lra::tasks
