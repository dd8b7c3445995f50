// A task: the source and shape of its examples.
//
// Goals of the room `tasks`: the published data and generators bit by bit, the differences
// documented, and users' own data as equals of them. Non-goals: augmentation, tokenizers, tasks
// without labels.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/parsed_number.h"
#include "base/task_shape.h"
#include "checks/baseline.h"
#include "checks/check_table.h"
#include "checks/facts.h"
#include "data/dataset.h"
#include "data/remote_data.h"

namespace lra {
class Progress;
}

namespace lra::tasks {

struct MakeOptions {
  std::string out;
  uint64_t seed = 0;
  std::optional<int64_t> num_train = {}, num_val = {}, num_test = {};  // absent: the task's own
};

// A dataset that an import wrote and did not publish yet, and what its files alone told.
struct ImportedData {
  DatasetWriter writer;
  std::vector<checks::SharedGroup> groups = {};
};
// Completes the dataset (DatasetWriter::complete()).
ImportedData completed(DatasetWriter writer, std::vector<checks::SharedGroup> groups = {});

// A property of every example of a split, for tables of where a model fails.
struct ExampleProperty {
  std::string name;                 // "depth"
  std::vector<std::string> values;  // one for each example, in the order of the split
};

// The answer at a position of a sequence.
struct PlaceLabel {
  int64_t place = 0;
  int32_t label = 0;
};

class Task {
 public:
  virtual ~Task() = default;
  virtual TaskShape shape() const = 0;
  // The kind of its stored tokens.
  virtual checks::InputKind input() const = 0;
  // Bytes of a stored token (dataset.h).
  virtual int64_t token_bytes() const { return 1; }
  // The answers, by place, of a sequence without padding, for a task that labels places.
  virtual std::vector<PlaceLabel> place_labels(std::span<const int32_t>) const { return {}; }
  // The name of its folder under a data root; empty: the task's own name.
  virtual std::string data_name() const { return ""; }
  // The validation protocol, for the record: "own", "test" or "heldout".
  virtual std::string validation() const { return "own"; }
  // The three splits as this configuration wants them (a held-out tenth is cut here).
  virtual Split split(const Dataset& dataset, const std::string& name) const {
    return dataset.split(name);
  }
  // Throws lra::Error for data that was made with other settings than these, and still has the
  // task's name and shape.
  virtual void refuse_other_settings(const Dataset&) const {}

  // Throws lra::Error for data that a model with these settings cannot judge, even where other data
  // is allowed: labels with other names.
  virtual void refuse_other_kind(const Dataset&) const {}

  virtual bool can_generate() const { return false; }
  // Examples of train, val and test that make() draws if the options do not say otherwise.
  virtual std::array<int64_t, 3> usual_sizes() const { return {}; }
  std::array<int64_t, 3> sizes(const MakeOptions& options) const;
  int64_t num_to_make(const MakeOptions& options) const;  // in all splits together
  // Throws lra::Error: the folder exists, the disk is full, a stop was requested (exit code 3), or
  // the task cannot be generated.
  virtual void make(const MakeOptions& options, Progress& progress) const;

  // Reads an official layout into a folder that is not published yet; the progress counts examples.
  // Throws lra::Error that names file and line (or archive entry) for data that is not as it must
  // be.
  virtual ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                              Progress& progress) const = 0;
  // The raw official data under a data root, as arguments for import; empty when there is none.
  // Throws lra::Error where only a part of it is there.
  virtual std::vector<std::string> find_sources(const std::string&) const { return {}; }
  // Writes the official layout below the folder `out`. Throws when it is there already.
  virtual void export_official(const Dataset& dataset, const std::string& out) const = 0;

  // The data that these settings expect, but for its labels.
  virtual checks::ExpectedData expected(const Dataset& dataset) const = 0;
  // The facts that the checks of this data compare its examples with.
  checks::DataFacts data_facts(const Dataset& dataset) const;
  // Why the examples of imported data are not the published ones; empty where no look can tell.
  virtual std::string other_benchmark(const Dataset&) const { return ""; }
  // Facts about what an import read, for a task whose files may have any columns.
  virtual std::vector<checks::Fact> reading(const Dataset&) const { return {}; }
  // Facts about the examples: those of every task, to which a task may add its own.
  virtual std::vector<checks::Fact> check(const Dataset& dataset) const;
  // The example for people, safe on a terminal: the text, the expression tree, the picture.
  virtual std::string render(const Split& split, int64_t example) const = 0;
  // One token in readable form: a gray value, a character, a symbol.
  virtual std::string token_text(int32_t token) const { return std::to_string(token); }
  // The names of the labels in their order; empty where labels are numbers.
  virtual std::vector<std::string> label_names(const Dataset&) const { return {}; }
  // Properties besides label and length, of the examples of split(dataset, name).
  virtual std::vector<ExampleProperty> example_properties(const Dataset&,
                                                          const std::string&) const {
    return {};
  }
  virtual std::vector<checks::Baseline> baselines(const Dataset& dataset) const = 0;
};

// token_text of the tasks that read byte b as token b + 1; bytes that are not printable ASCII as
// "\x0a", padding as "".
std::string byte_token_text(int32_t token);

struct TaskSpec {
  std::string_view name;     // "listops"
  std::string_view title;    // "Long ListOps"
  std::string_view summary;  // one line for `lra list tasks`
  std::string_view paper;    // where it is defined
  int64_t version;           // raised whenever scores could move
  // Set by task_spec().
  std::vector<FieldInfo> (*describe)() = nullptr;
  ConfigTable (*resolve)(const ConfigTable&) = nullptr;  // [task] with every setting written out
  std::unique_ptr<Task> (*make)(const ConfigTable&) = nullptr;  // reads [task]
  // The settings that prepared data states about itself, for a task that takes its shape from its
  // data; null for others.
  ConfigTable (*settings_of)(const Manifest&) = nullptr;
  // Those of them that only an import reads.
  std::span<const std::string_view> import_settings = {};
  // The files that `lra data import` reads, in words for `lra help TASK`; empty: nothing.
  std::string_view sources = {};
  const RemoteData* remote = nullptr;  // null: nothing to fetch
  // Outside of the arena, to compare layers: its presets count before those of models, and layers
  // that can be causal are, since one that sees what comes later has another task.
  bool is_diagnostic = false;
  // Models answer at several places of a sequence, and are judged by all of them together. The
  // label of an example is then the last answer.
  bool labels_places = false;
  // The share of positions that masked pretraining hides (Amos et al. 2024, section 3).
  double mask_fraction = 0.15;
};

// The spec with the functions that follow from the class of the task, OneTask(kFirst..., settings),
// and from the struct of its settings.
template <typename OneTask, typename Config, auto... kFirst>
constexpr TaskSpec task_spec(TaskSpec spec) {
  spec.describe = [] { return describe_config<Config>(); };
  spec.resolve = [](const ConfigTable& config) { return resolve_config<Config>(config, "task"); };
  spec.make = [](const ConfigTable& config) -> std::unique_ptr<Task> {
    return std::make_unique<OneTask>(kFirst..., read_config<Config>(config, "task"));
  };
  return spec;
}

// The manifest of a dataset of the task; `source` is "generated" or "imported".
Manifest new_manifest(const TaskSpec& spec, const std::string& source);
// The manifest of data that is made: `settings`, and the seed and the sizes of the splits.
Manifest generated_manifest(const TaskSpec& spec, std::map<std::string, std::string> settings,
                            uint64_t seed, const std::array<int64_t, 3>& sizes);
// The number that a setting of a manifest is; nothing without one.
template <typename T = int64_t>
std::optional<T> number_setting(const Manifest& manifest, const std::string& key) {
  const auto found = manifest.settings.find(key);
  return found == manifest.settings.end() ? std::nullopt : parsed_number<T>(found->second);
}

}  // namespace lra::tasks
