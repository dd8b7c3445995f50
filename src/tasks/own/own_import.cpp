#include "tasks/own/own_import.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <numeric>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "base/quoted.h"
#include "base/rng.h"
#include "checks/statistics.h"
#include "data/new_folder.h"
#include "data/python_reader.h"
#include "data/scaling.h"
#include "io/atomic_file.h"
#include "io/input_file.h"
#include "io/progress.h"
#include "tasks/all.h"

namespace lra::tasks {
namespace {

// Not of kNone, which read_tables() takes for train.
const char* name_of(FrameSplit split) { return kSplitNames.at(static_cast<size_t>(split) - 1); }

// Text that stands for a side file in the settings of a run: itself, or its hash if it is long.
std::string fact_of(const Json& content) {
  constexpr size_t kMaxBytes = 500;
  const std::string text = json_text(content);
  if (text.size() <= kMaxBytes) return text;
  return "hash " + to_hex(hash128(std::as_bytes(std::span(text))));
}

// Hashes the bytes of each file, in order, a block at a time.
std::string hash_of_files(const std::vector<std::string>& files) {
  constexpr size_t kBlockBytes = size_t{4} << 20;
  std::vector<char> block(kBlockBytes);
  Hasher all;
  for (const std::string& path : files) {
    const InputFile file(path);
    Hasher hasher;
    for (uint64_t offset = 0;;) {
      const size_t count = file.read_at(offset, block.data(), block.size());
      hasher.append(std::string_view(block.data(), count));
      offset += count;
      if (count < block.size()) break;
    }
    all.append(to_hex(hasher.digest()) + "\n");
  }
  return to_hex(all.digest());
}

// Numbers by their size if all are, else names by the alphabet.
std::vector<std::string> sorted_class_names(const std::set<std::string>& names) {
  constexpr size_t kFewestTargets = 10;
  std::vector<std::string> sorted(names.begin(), names.end());
  if (sorted.size() == 1) {
    throw Error({.where = "labels",
                 .what = "all examples have the label " + in_quotes(sorted[0]),
                 .expected = "two classes or more"});
  }
  const auto are = [&](const auto& number) {
    return std::ranges::all_of(sorted, [&](const auto& name) { return number(name).has_value(); });
  };
  if (are(parsed_number<int64_t>)) {
    std::ranges::stable_sort(sorted, {}, [](const auto& n) { return *parsed_number<int64_t>(n); });
  } else if (sorted.size() >= kFewestTargets && are(parsed_number<double>)) {
    throw Error({.where = "labels",
                 .what = "they are real numbers, such as " + quoted_list(sorted),
                 .expected = "names or whole numbers of classes",
                 .advice = "replace each number by that of a class"});
  }
  return sorted;
}

// How many of `count` each class gives: its share, rounded by the largest remainders, and at most
// all but one.
std::vector<size_t> shares_of(const std::vector<size_t>& sizes, size_t count) {
  const size_t total = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
  std::vector<size_t> shares(sizes.size()), order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  size_t given = 0;
  for (size_t c = 0; c < sizes.size(); ++c) {
    if (sizes[c] == 0) continue;
    shares[c] = std::min(sizes[c] * count / total, sizes[c] - 1);
    given += shares[c];
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t c) { return sizes[c] * count % std::max<size_t>(total, 1); });
  while (given < count) {
    const size_t before = given;
    for (const size_t c : order) {
      if (given == count || shares[c] + 1 >= sizes[c]) continue;
      ++shares[c];
      ++given;
    }
    if (given == before) break;  // one example of each class is left
  }
  return shares;
}

// Moves about `count` examples of train to the split `to`, as many of each class as its share asks
// for, in an order that `seed` decides. At least one example of each class stays in train, so fewer
// are drawn where classes are small. `labels` and `splits` are those of all examples.
void draw_split(const std::vector<int32_t>& labels, FrameSplit to, size_t count, uint64_t seed,
                std::vector<FrameSplit>& splits) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (splits[i] != FrameSplit::kTrain) continue;
    const auto label = static_cast<size_t>(labels[i]);
    if (label >= sizes.size()) sizes.resize(label + 1);
    ++sizes[label];
  }
  std::vector<size_t> wanted = shares_of(sizes, count);
  const Permutation order(std::max<size_t>(labels.size(), 1), derive_key(seed, RandomUse::kSplit));
  for (size_t k = 0; k < labels.size(); ++k) {
    const auto i = static_cast<size_t>(order(k));
    if (splits[i] != FrameSplit::kTrain) continue;
    size_t& rest = wanted[static_cast<size_t>(labels[i])];
    if (rest == 0) continue;
    --rest;
    splits[i] = to;
  }
}

class OwnImport {
 public:
  OwnImport(const CustomConfig& config, OwnExamples data)
      : config_(config), reading_(std::move(data.reading)), frames_(std::move(data.frames)) {}

  ImportedData run(const std::string& out);

 private:
  void read_tables();
  void name_labels();
  void draw_missing_splits();
  void refuse_untrained_labels() const;
  void state_facts();
  void standardize();
  Json scaling_json() const { return {{"mean", means_}, {"deviation", deviations_}}; }
  std::vector<checks::SharedGroup> shared_groups() const;
  Manifest manifest() const;
  void write(DatasetWriter& writer) const;
  void write_example(Frame& frame, int64_t example, int32_t label, DatasetWriter& writer) const;
  int64_t count_of(FrameSplit split) const { return std::ranges::count(splits_, split); }
  // Calls visit(frame, example, place among all) for the examples of a split.
  template <typename Visit>
  void for_each_of(FrameSplit split, const Visit& visit) const;

  CustomConfig config_;
  OwnReading reading_;
  FrameFile frames_;
  std::vector<int32_t> labels_;  // of each example, in the order of the names
  std::vector<FrameSplit> splits_;
  std::string drawn_;  // what is said about drawn splits
  std::vector<double> means_, deviations_;
};

void OwnImport::read_tables() {
  labels_.reserve(static_cast<size_t>(reading_.examples));
  splits_.reserve(static_cast<size_t>(reading_.examples));
  frames_.for_each([&](const Frame& frame) {
    for (int64_t i = 0; i < frame.size(); ++i) {
      LRA_CHECK(frame.label(i) < static_cast<int32_t>(reading_.labels.size()));
      labels_.push_back(frame.label(i));
      const FrameSplit split = frame.split(i);
      splits_.push_back(split == FrameSplit::kNone ? FrameSplit::kTrain : split);
    }
  });
}

// Renumbers the labels, which the reader numbers as it sees them.
void OwnImport::name_labels() {
  const std::vector<std::string> sorted =
      sorted_class_names({reading_.labels.begin(), reading_.labels.end()});
  std::vector<int32_t> places;
  std::vector<std::string> first(sorted.size());
  for (size_t i = 0; i < reading_.labels.size(); ++i) {
    const auto place = std::ranges::find(sorted, reading_.labels[i]) - sorted.begin();
    places.push_back(static_cast<int32_t>(place));
    first.at(static_cast<size_t>(place)) = reading_.first.at(i);
  }
  for (int32_t& label : labels_) label = places.at(static_cast<size_t>(label));
  reading_.labels = sorted;
  reading_.first = first;
}

void OwnImport::draw_missing_splits() {
  constexpr int64_t kFewestToDraw = 10, kDrawnPart = 10;
  const int64_t num_train = count_of(FrameSplit::kTrain);
  const bool lacks_split = count_of(FrameSplit::kVal) == 0 || count_of(FrameSplit::kTest) == 0;
  if (num_train == 0) {
    throw Error({.where = "split train",
                 .what = "has no example",
                 .expected = "examples to train on",
                 .advice = "name a file train..., or write train in the column split"});
  }
  if (num_train < kFewestToDraw && lacks_split) {
    throw Error({.where = "split train",
                 .what = "has " + std::to_string(num_train) + " examples",
                 .expected = std::to_string(kFewestToDraw) + " or more to draw other splits from",
                 .advice = "name files train, val and test, or add a column split"});
  }
  for (const FrameSplit split : {FrameSplit::kVal, FrameSplit::kTest}) {
    if (count_of(split) > 0) continue;
    draw_split(labels_, split, static_cast<size_t>(std::max<int64_t>(1, num_train / kDrawnPart)),
               static_cast<uint64_t>(config_.split_seed), splits_);
    if (count_of(split) == 0) {
      throw Error({.where = "split " + std::string(name_of(split)),
                   .what = "cannot be drawn: train has a single example of each class",
                   .expected = "two or more of a class",
                   .advice = "add a split " + std::string(name_of(split)) + " to the files"});
    }
    drawn_ += (drawn_.empty() ? "" : "; ") + std::string(name_of(split)) +
              " was drawn from train by class, with task.split_seed=" +
              std::to_string(config_.split_seed);
  }
}

void OwnImport::refuse_untrained_labels() const {
  std::vector<bool> is_trained(reading_.labels.size());
  for (size_t i = 0; i < labels_.size(); ++i) {
    if (splits_[i] == FrameSplit::kTrain) is_trained.at(static_cast<size_t>(labels_[i])) = true;
  }
  const auto missing = std::ranges::find(is_trained, false);
  if (missing == is_trained.end()) return;
  const auto label = static_cast<size_t>(missing - is_trained.begin());
  std::vector<std::string> trained;
  for (size_t c = 0; c < is_trained.size(); ++c) {
    if (is_trained[c]) trained.push_back(reading_.labels[c]);
  }
  throw Error(
      {.where = reading_.first[label],
       .what = "has the label " + in_quotes(reading_.labels[label]) + ", which train does not have",
       .expected = "one of " + quoted_list(trained),
       .advice = "write labels the same way in all files, or leave out those not in train"});
}

void OwnImport::state_facts() {
  config_.input = reading_.input;
  config_.channels = reading_.channels;
  config_.towers = reading_.sequences;
  config_.shortest = reading_.shortest;
  config_.longest = config_.length = reading_.longest;
  // 0 is padding.
  config_.vocabulary = config_.input == "text"     ? 257
                       : config_.input == "tokens" ? reading_.largest + 2
                                                   : 0;
  config_.classes = static_cast<int64_t>(reading_.labels.size());
  config_.num_train = count_of(FrameSplit::kTrain);
  config_.num_val = count_of(FrameSplit::kVal);
  config_.num_test = count_of(FrameSplit::kTest);
  config_.labels = fact_of(Json(reading_.labels));
}

template <typename Visit>
void OwnImport::for_each_of(FrameSplit split, const Visit& visit) const {
  size_t place = 0;
  frames_.for_each([&](Frame& frame) {
    for (int64_t i = 0; i < frame.size(); ++i, ++place) {
      if (splits_[place] == split) visit(frame, i, place);
    }
  });
}

void OwnImport::standardize() {
  const auto channels = static_cast<size_t>(config_.channels);
  std::vector<checks::Spread> all(channels);
  std::vector<double> numbers;
  for_each_of(FrameSplit::kTrain, [&](Frame& frame, int64_t example, size_t) {
    for (int64_t sequence = 0; sequence < frame.num_sequences(); ++sequence) {
      numbers.clear();
      frame.append_numbers(sequence, example, numbers);
      for (size_t k = 0; k < numbers.size(); ++k) all[k % channels].add(numbers[k]);
    }
  });
  for (const checks::Spread& channel : all) {
    means_.push_back(channel.mean);
    // A channel that never varies is not scaled.
    deviations_.push_back(channel.squares > 0 ? channel.deviation() : 1);
  }
  config_.scaling = fact_of(scaling_json());
}

// Adds an example of which read(sequence, words) gives each sequence.
template <typename T, typename Read>
void add_sequences(int64_t num_sequences, int32_t label, DatasetWriter& writer, const Read& read) {
  std::array<std::vector<T>, 2> stored;
  std::vector<std::span<const T>> spans;
  for (int64_t sequence = 0; sequence < num_sequences; ++sequence) {
    std::vector<T>& words = stored.at(static_cast<size_t>(sequence));
    read(sequence, words);
    spans.emplace_back(words);
  }
  writer.add(label, std::span(std::as_const(spans)));
}

void OwnImport::write_example(Frame& frame, int64_t example, int32_t label,
                              DatasetWriter& writer) const {
  const int64_t count = frame.num_sequences(), token_bytes = own_token_bytes(config_);
  const auto read_numbers = [&](int64_t sequence, auto& numbers) {
    frame.append_numbers(sequence, example, numbers);
  };
  if (config_.input != "values") {
    if (token_bytes == 1) return add_sequences<uint8_t>(count, label, writer, read_numbers);
    if (token_bytes == 2) return add_sequences<uint16_t>(count, label, writer, read_numbers);
    return add_sequences<uint32_t>(count, label, writer, read_numbers);
  }
  const auto channels = static_cast<size_t>(config_.channels);
  add_sequences<uint32_t>(count, label, writer, [&](int64_t sequence, auto& words) {
    std::vector<double> numbers;
    read_numbers(sequence, numbers);
    for (size_t k = 0; k < numbers.size(); ++k) {
      const size_t c = k % channels;
      const double value = means_.empty() ? numbers[k] : (numbers[k] - means_[c]) / deviations_[c];
      words.push_back(std::bit_cast<uint32_t>(static_cast<float>(value)));
    }
  });
}

void OwnImport::write(DatasetWriter& writer) const {
  for (const FrameSplit split : {FrameSplit::kTrain, FrameSplit::kVal, FrameSplit::kTest}) {
    writer.begin_split(name_of(split));
    for_each_of(split, [&](Frame& frame, int64_t example, size_t place) {
      write_example(frame, example, labels_[place], writer);
    });
  }
}

Manifest OwnImport::manifest() const {
  Manifest manifest = new_manifest(kCustomTask, "imported");
  manifest.source_hash = hash_of_files(reading_.files);
  manifest.num_towers = config_.towers;
  manifest.token_bytes = own_token_bytes(config_);
  manifest.token_offset = config_.input == "values" ? 0 : 1;
  manifest.settings = manifest_settings(config_);
  const std::string named = reading_.named_by.empty() ? "" : "named by the " + reading_.named_by;
  const std::string both = named.empty() || drawn_.empty() ? "" : "; ";
  manifest.settings[std::string(kReading) + "splits"] = named + both + drawn_;
  manifest.settings[std::string(kReading) + "input"] = reading_.why;
  manifest.settings[std::string(kReading) + "columns"] = json_text(reading_.columns);
  manifest.settings[std::string(kReading) + "ignored"] = json_text(reading_.ignored);
  return manifest;
}

// Examples of one patient or recording are alike: those of the test were seen if others are in
// train. A column of few values tells kinds, not things.
std::vector<checks::SharedGroup> OwnImport::shared_groups() const {
  constexpr size_t kFewestThings = 10;
  std::vector<checks::SharedGroup> groups;
  for (size_t g = 0; g < reading_.groups.size(); ++g) {
    std::unordered_set<uint64_t> trained;
    checks::SharedGroup& group =
        groups.emplace_back(checks::SharedGroup{reading_.groups[g], 0, config_.num_test});
    const auto column = static_cast<int64_t>(g);
    for_each_of(FrameSplit::kTrain, [&](const Frame& frame, int64_t example, size_t) {
      trained.insert(frame.group(column, example));
    });
    if (trained.size() < kFewestThings) continue;
    for_each_of(FrameSplit::kTest, [&](const Frame& frame, int64_t example, size_t) {
      group.num_shared += trained.contains(frame.group(column, example));
    });
  }
  return groups;
}

ImportedData OwnImport::run(const std::string& out) {
  read_tables();
  name_labels();
  draw_missing_splits();
  refuse_untrained_labels();
  state_facts();
  if (config_.input == "values" && config_.standardize) standardize();
  DatasetWriter writer(out, manifest(), 0);
  write(writer);
  writer.add_side_file(kLabelsFile, json_text(Json(reading_.labels)) + "\n");
  if (!means_.empty()) {
    writer.add_side_file(kScalingFile, json_text(scaling_json()) + "\n");
  }
  return completed(std::move(writer), shared_groups());
}

}  // namespace

int64_t own_token_bytes(const CustomConfig& config) {
  if (config.input == "values") return 4 * config.channels;
  // Ids are one above the stored integers.
  return config.vocabulary <= 257 ? 1 : config.vocabulary <= 65537 ? 2 : 4;
}

ImportedData import_own_files(const std::vector<std::string>& files, const std::string& out,
                              const CustomConfig& config, Progress& progress) {
  CustomConfig named = config;
  named.name = std::filesystem::path(without_trailing_slash(out)).filename().string();
  const std::string parent = folder_of(without_trailing_slash(out));
  make_folder(parent);
  return OwnImport(named, read_with_python(files, config, parent, progress)).run(out);
}

}  // namespace lra::tasks
