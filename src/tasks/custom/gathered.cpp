#include "tasks/custom/gathered.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "base/quoted.h"
#include "base/rng.h"
#include "base/text_format.h"
#include "io/input_file.h"
#include "io/mapped_file.h"
#include "io/progress.h"
#include "tasks/custom/npz.h"
#include "tasks/custom/tables.h"
#include "tasks/files.h"
#include "tasks/text_lines.h"

namespace lra::tasks {
namespace {

constexpr const char* kEndings = ".jsonl, .csv, .tsv, .parquet or .npz";
constexpr size_t kDrawnPart = 10;  // one in ten

bool is_readable(const std::string& path) { return has_ending(path, ".npz") || is_table(path); }

// The files themselves, and those in folders.
std::vector<std::string> files_of(const std::vector<std::string>& sources) {
  std::vector<std::string> files;
  for (const std::string& source : sources) {
    if (!is_folder(source)) {
      if (!is_readable(source)) refuse_data(source, "has an unknown ending", kEndings);
      files.push_back(source);
      continue;
    }
    const size_t before = files.size();
    for (const std::string& name : data_names_in(source)) {
      if (is_readable(name)) files.push_back(source + "/" + name);
    }
    if (files.size() == before) refuse_data(source, "holds no file that can be read", kEndings);
  }
  return files;
}

// Takes examples from the readers one by one, and compares each with the first.
class Gatherer {
 public:
  explicit Gatherer(const CustomConfig& config) { gathered_.config = config; }

  void add(const std::string& where, OwnExample&& example, const std::string& file_split) {
    if (example.label.empty()) refuse_data(where, "the label is empty", "a name or a number");
    if (!example.split.empty()) {
      const std::string split = split_of_name(example.split);
      if (split.empty()) {
        refuse_data(where, "the split is " + in_quotes(example.split), "train, val or test");
      }
      example.split = split;
    } else {
      example.split = file_split;
    }
    for (OwnSequence& sequence : example.sequences) settle(where, sequence);
    gathered_.config.towers = static_cast<int64_t>(example.sequences.size());
    if (!gathered_.examples.empty() &&
        example.sequences.size() != gathered_.examples[0].sequences.size()) {
      refuse_data(where, "has a different number of sequences from the first example", "as many");
    }
    gathered_.examples.push_back(std::move(example));
  }

  GatheredExamples finish();

 private:
  // Text as numbers where these are wanted; the same kind of sequence everywhere.
  void settle(const std::string& where, OwnSequence& sequence) {
    const std::string& input = gathered_.config.input;
    const bool is_text = sequence.channels == 0;
    if (is_text && (input == "tokens" || input == "values")) {
      sequence = numbers_of_text(sequence.text, where);
    } else if (is_text) {
      sequence.text = document_text(sequence.text, where);
    } else if (input == "text") {
      refuse_data(where, "the sequence is a list of numbers", "text, as task.input says");
    }
    if (channels_ < 0) channels_ = sequence.channels;
    if (sequence.channels != channels_) {
      const auto kind = [](int64_t channels) {
        return channels == 0 ? std::string("text") : std::to_string(channels) + " channels";
      };
      refuse_data(where, "a sequence has " + kind(sequence.channels),
                  kind(channels_) + ", as the first one");
    }
    if (is_text ? sequence.text.empty() && sequence.numbers.empty() : sequence.numbers.empty()) {
      refuse_data(where, "a sequence is empty", "at least one position",
                  "leave the example out of the file");
    }
    if (input == "tokens" && !sequence.all_ids) {
      refuse_data(where, "a token is not a whole number from 0 to " + std::to_string(kMaxId),
                  "token ids", "to read real numbers add --set task.input=values");
    }
    all_ids_ = all_ids_ && sequence.all_ids;
  }

  void name_labels();
  void tell_splits_apart();
  void draw_splits();
  void state_facts();
  void standardize();

  GatheredExamples gathered_;
  int64_t channels_ = -1;  // 0: text; -1: not known yet
  bool all_ids_ = true;
};

// Numbers by their size, names by the alphabet.
void Gatherer::name_labels() {
  std::set<std::string> names;
  bool all_numbers = true;
  const auto number_of = [](const std::string& text) -> std::optional<int64_t> {
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = problem == std::errc() && end == text.data() + text.size();
    return is_number ? std::optional(number) : std::nullopt;
  };
  for (const OwnExample& example : gathered_.examples) {
    all_numbers =
        names.insert(example.label).second ? all_numbers && number_of(example.label) : all_numbers;
    if (static_cast<int64_t>(names.size()) <= CustomConfig::kMaxClasses) continue;
    refuse_data("labels",
                "there are over " + thousands(CustomConfig::kMaxClasses) + " different ones",
                "the names or numbers of classes", "name their column with --set task.label=NAME");
  }
  std::vector<std::string>& sorted = gathered_.label_names;
  sorted.assign(names.begin(), names.end());
  if (all_numbers)
    std::ranges::stable_sort(sorted, {}, [&](const auto& s) { return *number_of(s); });
  if (sorted.size() > 1) return;
  refuse_data("labels", "all examples have the label " + in_quotes(sorted.at(0)),
              "two classes or more");
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
  constexpr size_t kFewestToDraw = 10;
  if (splits["train"].size() < kFewestToDraw && splits.size() < 3) {
    refuse_data("split train", "has " + std::to_string(splits["train"].size()) + " examples",
                std::to_string(kFewestToDraw) + " or more to draw other splits from",
                "name a file train..., or add a column split");
  }
  std::set<std::string> drawn = {"val", "test"};
  for (const auto& [name, unused] : splits) drawn.erase(name);
  if (!drawn.empty()) draw_splits();
  std::set<std::string> trained;
  for (const size_t i : splits["train"]) trained.insert(gathered_.examples[i].label);
  for (const auto& [name, places] : splits) {
    for (const size_t i : places) {
      const std::string& label = gathered_.examples[i].label;
      if (trained.contains(label)) continue;
      refuse_data("split " + name,
                  "has the label " + in_quotes(label) + ", which train does not have",
                  "one of " + quoted_list({trained.begin(), trained.end()}),
                  drawn.contains(name)
                      ? "to draw other splits add --set task.split_seed=1"
                      : "write labels the same way in all files, or leave out those not in train");
    }
  }
}

void Gatherer::state_facts() {
  CustomConfig& config = gathered_.config;
  if (config.input == "auto") {
    const bool are_ids = all_ids_ && channels_ == 1;
    config.input = channels_ == 0 ? "text" : are_ids ? "tokens" : "values";
  }
  if (config.input == "tokens" && channels_ != 1) {
    refuse_data("task.input",
                "is tokens, and positions have " + std::to_string(channels_) + " numbers",
                "values");
  }
  config.channels = config.input == "values" ? channels_ : 1;
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

void Gatherer::standardize() {
  const auto channels = static_cast<size_t>(gathered_.config.channels);
  std::vector<double> sums(channels), squares(channels);
  double count = 0;
  const auto visit = [&](const auto& places, auto&& act) {
    for (const size_t i : places) {
      for (OwnSequence& sequence : gathered_.examples[i].sequences) {
        for (size_t k = 0; k < sequence.numbers.size(); ++k) act(sequence.numbers[k], k % channels);
      }
    }
  };
  const std::vector<size_t>& train = gathered_.splits["train"];
  visit(train, [&](float value, size_t channel) {
    sums[channel] += value;
    count += channel == 0;
  });
  for (const double sum : sums) gathered_.means.push_back(sum / count);
  visit(train, [&](float value, size_t channel) {
    squares[channel] += std::pow(value - gathered_.means[channel], 2);
  });
  for (const double square : squares) {
    const double deviation = std::sqrt(square / count);
    gathered_.deviations.push_back(deviation > 0 ? deviation : 1);  // a channel that never varies
  }
  for (const auto& [name, places] : gathered_.splits) {
    visit(places, [&](float& value, size_t channel) {
      value =
          static_cast<float>((value - gathered_.means[channel]) / gathered_.deviations[channel]);
    });
  }
}

GatheredExamples Gatherer::finish() {
  if (gathered_.examples.empty()) refuse_data("sources", "hold no example", "examples with labels");
  name_labels();
  tell_splits_apart();
  state_facts();
  if (gathered_.config.input == "values" && gathered_.config.standardize) standardize();
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
  const std::vector<std::string> files = files_of(sources);
  Gatherer gatherer(config);
  const ColumnSettings columns{config.sequences, config.label, config.split};
  for (const std::string& file : files) {
    const std::string split = files.size() > 1 ? split_of_file(file) : "";
    const auto take = [&](const std::string& where, OwnExample&& example) {
      if (files.size() > 1 && split.empty() && example.split.empty()) {
        refuse_data(file, "does not say which split it is", "train, val or test in its name",
                    "rename it, add a column split, or import one file alone");
      }
      gatherer.add(where, std::move(example), split);
      progress.update(1);
    };
    has_ending(file, ".npz") ? read_npz(file, columns, take) : read_table(file, columns, take);
  }
  GatheredExamples gathered = gatherer.finish();
  gathered.source_hash = hash_of_files(files);
  return gathered;
}

}  // namespace lra::tasks
