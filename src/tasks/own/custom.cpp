// The shape of this task is that of its data: the manifest of prepared data states it as settings
// (TaskSpec::settings_of), which a run takes over as its own [task].
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <iterator>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "checks/baseline.h"
#include "checks/facts.h"
#include "data/drawn_examples.h"
#include "data/new_folder.h"
#include "data/stopping.h"
#include "io/json.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/own/own_baselines.h"
#include "tasks/own/own_import.h"

namespace lra::tasks {
namespace {

ConfigTable settings_of(const Manifest& manifest) { return write_config(config_of(manifest)); }

class CustomTask : public Task {
 public:
  explicit CustomTask(CustomConfig config) : config_(std::move(config)) {}

  TaskShape shape() const override {
    const bool same_length = config_.shortest == config_.longest;
    return {.length = config_.length,
            .vocabulary = config_.vocabulary,
            .num_classes = config_.classes,
            .num_towers = config_.towers,
            .has_padding = !same_length || config_.length != config_.longest,
            .values = config_.input == "values"
                          ? std::optional(
                                ValueInput{.channels = config_.channels, .stored_as_float = true})
                          : std::nullopt};
  }
  int64_t token_bytes() const override { return own_token_bytes(config_); }
  std::string data_name() const override { return config_.name; }
  void refuse_other_kind(const Dataset& dataset) const override;
  void refuse_other_settings(const Dataset& dataset) const override;
  checks::InputKind input() const override;
  checks::ExpectedData expected(const Dataset& dataset) const override;
  ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                      Progress& progress) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override;
  std::vector<checks::Fact> reading(const Dataset& dataset) const override;
  std::vector<checks::Fact> check(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  std::string token_text(int32_t token) const override {
    return config_.input == "text" ? byte_token_text(token) : std::to_string(token - 1);
  }
  std::vector<std::string> label_names(const Dataset& dataset) const override;
  std::vector<checks::Baseline> baselines(const Dataset& dataset) const override;

 private:
  // Refuses data with other facts of these names; without `advice`, with that of a run on its own
  // data.
  void refuse_other_facts(const Dataset& dataset, std::initializer_list<std::string> names,
                          const std::string& advice = "") const;
  Json sequence_json(const Split& split, int64_t example, int64_t tower) const;

  CustomConfig config_;
};

// "12", or "33 to 58"
std::string lengths_text(const CustomConfig& config) {
  const std::string most = thousands(config.longest);
  return config.shortest < config.longest ? thousands(config.shortest) + " to " + most : most;
}

// Empty texts are those of older data.
void CustomTask::refuse_other_facts(const Dataset& dataset,
                                    std::initializer_list<std::string> names,
                                    const std::string& advice) const {
  const auto found = manifest_settings(config_of(dataset.manifest())),
             expected = manifest_settings(config_);
  for (const std::string& name : names) {
    const std::string &there = found.at(name), &here = expected.at(name);
    if (there == here || there.empty() || here.empty()) continue;
    throw Error({.where = dataset.folder(),
                 .what = "its " + name + (name.ends_with('s') ? " are " : " is ") + there,
                 .expected = here + ", as in the settings of the run",
                 .advice = advice.empty() ? "name the folder of the run's data, or leave task." +
                                                name + " to the data"
                                          : advice});
  }
}

void CustomTask::refuse_other_kind(const Dataset& dataset) const {
  const std::string advice = "name the folder of the run's data, or train a run on this data";
  refuse_other_facts(dataset, {"input", "labels", "channels", "towers"}, advice);
  const CustomConfig found = config_of(dataset.manifest());
  const bool has_its_lengths =
      found.shortest == config_.shortest && found.longest == config_.longest;
  if (shape().has_padding || has_its_lengths) return;
  throw Error(
      {.where = dataset.folder(),
       .what = "its sequences have " + lengths_text(found) + " positions",
       .expected = lengths_text(config_) + ", as all of the run's data: its model knows no padding",
       .advice = advice});
}

void CustomTask::refuse_other_settings(const Dataset& dataset) const {
  refuse_other_kind(dataset);
  refuse_other_facts(dataset, {"classes", "vocabulary", "shortest", "longest", "num_train",
                               "num_val", "num_test", "scaling"});
}

checks::InputKind CustomTask::input() const {
  return config_.input == "text"     ? checks::InputKind::kText
         : config_.input == "values" ? checks::InputKind::kValues
                                     : checks::InputKind::kTokens;
}

checks::ExpectedData CustomTask::expected(const Dataset&) const {
  return {.sizes = checks::sizes_of(config_),
          .shortest = config_.shortest,
          .longest = config_.longest,
          .bin = std::max<int64_t>(1, (config_.longest + 7) / 8)};
}

ImportedData CustomTask::import(const std::vector<std::string>& sources, const std::string& out,
                                Progress& progress) const {
  return import_own_files(sources, out, config_, progress);
}

std::vector<std::string> CustomTask::label_names(const Dataset& dataset) const {
  const std::string path = dataset.folder() + "/" + kLabelsFile;
  const Json names = parse_json(dataset.read_side_file(kLabelsFile), path);
  if (!names.is_array() || static_cast<int64_t>(names.size()) != config_.classes) {
    throw Error({.where = path,
                 .what = "is not a list of names",
                 .expected = std::to_string(config_.classes) + " names",
                 .advice = "import the dataset again"});
  }
  return names.get<std::vector<std::string>>();
}

// A sequence as read_table() takes it: a text, a list of ids, or of values, or of channels.
Json CustomTask::sequence_json(const Split& split, int64_t example, int64_t tower) const {
  if (config_.input == "text") {
    const std::span<const uint8_t> bytes = split.stored_bytes(example, tower);
    return std::string(bytes.begin(), bytes.end());
  }
  const auto channels = static_cast<size_t>(split.words_per_token());
  const std::vector<int32_t> words = split.all_tokens(example, tower);
  Json list = Json::array();
  for (size_t at = 0; at < words.size(); at += channels) {
    if (config_.input == "tokens") {
      list.push_back(words[at] - 1);
    } else if (channels == 1) {
      list.push_back(std::bit_cast<float>(words[at]));
    } else {
      Json position = Json::array();
      for (size_t c = 0; c < channels; ++c) {
        position.push_back(std::bit_cast<float>(words[at + c]));
      }
      list.push_back(std::move(position));
    }
  }
  return list;
}

void CustomTask::export_official(const Dataset& dataset, const std::string& out) const {
  const std::vector<std::string> names = label_names(dataset);
  const std::string key = config_.input;
  write_new_folder(out, [&](const std::string& partial) {
    for (const char* name : kSplitNames) {
      const Split split = dataset.split(name);
      NewFile file(partial + "/" + name + ".jsonl");
      for (int64_t i = 0; i < split.size(); ++i) {
        throw_if_stopped();
        Json row = Json::object();
        for (int64_t tower = 0; tower < config_.towers; ++tower) {
          row[config_.towers == 1 ? key : "x" + std::to_string(tower + 1)] =
              sequence_json(split, i, tower);
        }
        row["label"] = names.at(static_cast<size_t>(split.label(i)));
        const std::string line = json_text(row) + "\n";
        file.append(std::as_bytes(std::span(line)));
      }
    }
  });
}

// "values, 12 positions with 40 channels each"
std::string shape_text(const CustomConfig& config) {
  const std::string channels =
      config.channels > 1 ? " with " + std::to_string(config.channels) + " channels each" : "";
  return config.input + ", " + lengths_text(config) +
         (config.input == "text" ? " bytes" : " positions") + channels;
}

// Rows of [name, ...] or [name, why]; older data has a text of its own.
void add_rows(const std::string& what, const std::string& text, std::vector<checks::Fact>& facts) {
  const Json rows = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!rows.is_array()) {
    facts.push_back({.name = what, .value = text});
    return;
  }
  for (const Json& row : rows) {
    std::string value;
    for (size_t i = 1; i < row.size(); ++i) {
      const std::string part = row[i].get<std::string>();
      if (!part.empty()) value += (value.empty() ? "" : ", ") + part;
    }
    const std::string name = row.at(0).get<std::string>();
    facts.push_back({.name = what == "columns" ? "column " + in_quotes(name) : what,
                     .value = what == "columns" ? value : name + ": " + value});
  }
}

// Older data does not say all of it.
std::vector<checks::Fact> CustomTask::reading(const Dataset& dataset) const {
  const auto& settings = dataset.manifest().settings;
  const auto read = [&](const std::string& what) {
    const auto found = settings.find(kReading + what);
    return found == settings.end() ? "" : found->second;
  };
  const std::string why = read("input");
  std::vector<checks::Fact> facts = {
      {.name = "input", .value = shape_text(config_) + (why.empty() ? "" : " (" + why + ")")}};
  for (const char* what : {"columns", "labels", "splits", "ignored"}) {
    if (const std::string text = read(what); !text.empty()) add_rows(what, text, facts);
  }
  return facts;
}

std::vector<checks::Fact> CustomTask::check(const Dataset& dataset) const {
  std::vector<checks::Fact> facts = reading(dataset);
  std::ranges::move(Task::check(dataset), std::back_inserter(facts));
  return facts;
}

std::string CustomTask::render(const Split& split, int64_t example) const {
  constexpr size_t kMaxShown = 20000;  // bytes of a sequence
  std::string text = "label " + std::to_string(split.label(example)) + "\n";
  for (int64_t tower = 0; tower < config_.towers; ++tower) {
    const Json sequence = sequence_json(split, example, tower);
    std::string shown = sequence.is_string() ? sequence.get<std::string>() : json_text(sequence);
    if (shown.size() > kMaxShown) shown = shown.substr(0, kMaxShown) + " ...";
    text += printable(shown) + "\n";
  }
  return text;
}

std::vector<checks::Baseline> CustomTask::baselines(const Dataset& dataset) const {
  const Split train = split(dataset, "train"), test = split(dataset, "test");
  std::vector<checks::Baseline> found = {
      checks::majority_baseline(train, test, config_.classes),
      centroid_baseline(train, test, config_),
      checks::place_baseline(train, test, config_.classes, config_.towers)};
  if (config_.input != "text") return found;
  found.push_back(word_baseline(train, test, config_));
  if (config_.classes == 2) {
    constexpr int64_t kMostExamples = 50000;  // of 1 KB each, in memory
    const auto some = [&](const Split& s) {
      return s.size() <= kMostExamples ? s : s.subset(drawn_examples(s.size(), kMostExamples));
    };
    found.push_back(
        checks::byte_unigram_baseline(some(train), some(test), config_.length, config_.towers));
  }
  return found;
}

}  // namespace

constinit const TaskSpec kCustomTask = task_spec<CustomTask, CustomConfig>({
    .name = "custom",
    .title = "Own data",
    .summary = "classification of one or two sequences of your own: text, tokens or numbers",
    .paper = "none: data of your own, docs/data.md",
    .version = 1,
    .settings_of = settings_of,
    .import_settings = CustomConfig::kImportSettings,
    .sources =
        "files with one example per row: CSV, JSON, JSON Lines, Parquet, Feather, Arrow, NumPy, "
        ".ts or .arff; one file, or several with train, val or test in their names; or a folder of "
        "such files, or with a folder of texts, pictures or recordings for each class",
    .remote = nullptr,
});

}  // namespace lra::tasks
