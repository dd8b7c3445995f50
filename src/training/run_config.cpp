#include "training/run_config.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/quoted.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/python_layer.h"
#include "models/python_model.h"
#include "records/check_record.h"
#include "records/run_identity.h"
#include "tasks/all.h"
#include "training/budget.h"
#include "training/setting_list.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

// [run] of a config.toml.
struct RunHeader {
  std::string task, model, preset, initial_weights, trained_on;
  int64_t seed = 0;
  void fields(auto& f) {
    f("task", task, "");
    f("model", model, "");
    f("preset", preset, "");
    f("seed", seed, "");
    f("initial_weights", initial_weights, "");
    f("trained_on", trained_on, "");
  }
};

constexpr const char* kWholeModel = "whole";

constexpr const char* kSections[] = {"task", "model", "mixer", "train", "groups"};

const ConfigTable& section(const ConfigTable& table, const char* name) {
  static const ConfigTable empty;
  const ConfigValue* found = table.find(name);
  if (!found) return empty;
  if (!found->as_table()) {
    throw Error({.where = found->where,
                 .what = std::string(name) + " is not a table",
                 .expected = "[" + std::string(name) + "]"});
  }
  return *found->as_table();
}

void merge_section(ConfigTable& settings, const ConfigTable& from) {
  for (const char* name : kSections) merge(settings.table(name), section(from, name));
}

// The advice for settings of an unknown section, or for a setting without its section if `value` is
// one.
std::string section_advice(const std::string& key, const ConfigValue& value,
                           const std::vector<std::string>& known) {
  const ConfigTable* table = value.as_table();
  const std::string setting = table ? "" : setting_suggestion(key);
  if (!setting.empty()) return setting;
  const std::string near = nearest_name(key, known);
  if (near.empty() || !table || table->empty()) return suggestion(key, known);
  const std::string full = nearest_setting(near, near + "." + table->begin()->key);
  return "did you mean " + in_quotes(full.empty() ? near : full) + "?";
}

void refuse_unknown_sections(const ConfigTable& settings,
                             const std::vector<std::string>& besides = {}) {
  std::vector<std::string> known(std::begin(kSections), std::end(kSections));
  known.insert(known.end(), besides.begin(), besides.end());
  for (const auto& [key, value] : settings) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error({.where = value.where,
                   .what = std::string("unknown ") + (value.as_table() ? "section " : "setting ") +
                           in_quotes(key),
                   .advice = section_advice(key, value, known)});
    }
  }
}

// The name of a task, without that of its data.
std::string task_name(const std::string& task) { return std::string(tasks::find_task(task).name); }

std::string task_file(const std::string& task) {
  return config_folder() + "/tasks/" + task_name(task) + ".toml";
}

std::string model_file(const std::string& model) {
  return config_folder() + "/models/" + model + ".toml";
}

// Empty for the published preset of a model, which its file has as a whole.
ConfigTable task_layers(const std::string& task, const std::string& model,
                        const std::string& preset) {
  const std::string path = task_file(task);
  const ConfigTable file = parse_toml_file(path);
  const ConfigValue* found = file.find(preset);
  if (!found || !found->as_table()) {
    const std::vector<std::string> known = preset_names(task, model);
    if (std::ranges::find(known, preset) != known.end()) return {};
    throw Error({.where = is_model_preset(preset) ? model_file(model) : path,
                 .what = "there is no preset " + in_quotes(preset) + " for " + task,
                 .advice = suggestion(preset, known)});
  }
  refuse_unknown_sections(*found->as_table());
  return *found->as_table();
}

// A section under a misspelled name would be left out without a word. A preset may belong to
// another task than the one of this run.
void refuse_unknown_model_sections(const ConfigTable& file) {
  std::vector<std::string> task_names, presets;
  for (const auto& entry : fs::directory_iterator(config_folder() + "/tasks")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string& name = task_names.emplace_back(entry.path().stem());
    for (std::string& preset : preset_names(name)) presets.push_back(std::move(preset));
  }
  presets.insert(presets.end(), std::begin(kModelPresets), std::end(kModelPresets));
  refuse_unknown_sections(file, presets);
  for (const std::string& preset : presets) {
    const ConfigTable& of_preset = section(file, preset.c_str());
    refuse_unknown_sections(of_preset, task_names);
    for (const std::string& task : task_names) {
      refuse_unknown_sections(section(of_preset, task.c_str()));
    }
  }
}

// [mixer], then [PRESET.*], then [PRESET.TASK.*] of the model's file.
void merge_model_layers(ConfigTable& settings, const std::string& model, const std::string& task,
                        const std::string& preset) {
  if (mixers::is_python_class(model)) return;  // its class has its own defaults
  const ConfigTable file = parse_toml_file(model_file(model));
  refuse_unknown_model_sections(file);
  merge_section(settings, file);
  const auto merge_preset = [&](const std::string& name) {
    const ConfigTable& of_preset = section(file, name.c_str());
    merge_section(settings, of_preset);
    merge_section(settings, section(of_preset, task_name(task).c_str()));
  };
  if (preset == kPretrainingPreset) merge_preset(kFineTuningPreset);
  merge_preset(preset);
}

// Under a causal mixer the first position of a sequence sees only itself.
void refuse_blind_readout(const RunConfig& run) {
  const auto is = [&]<typename T>(const char* key, T wanted) {
    const ConfigValue* found = run.mixer_settings.find(key);
    const T* value = found ? std::get_if<T>(&found->value) : nullptr;
    return value && *value == wanted;
  };
  const std::string& pooling = run.model_config.pooling;
  const char* blinding = is("bidirectional", false) ? "mixer.bidirectional"
                         : is("causal", true)       ? "mixer.causal"
                         : is("width", int64_t{1})  ? "mixer.width"  // of a kernel: the token alone
                                                    : nullptr;
  if (!blinding || is("global_first", true)) return;
  if (pooling != "cls" && pooling != "first") return;
  throw Error({.where = blinding,
               .what = "the classifier reads the first position (model.pooling = '" + pooling +
                       "'), which sees no other token",
               .expected = "another pooling",
               .advice = "add --set model.pooling=mean"});
}

// Refuses train.objective=masked where the program has neither tokens nor gray levels to predict.
void refuse_unpredictable(const RunConfig& run) {
  if (!run.train.is_masked()) return;
  const auto refuse = [](const char* where, const std::string& what, const std::string& advice) {
    throw Error({.where = where,
                 .what = what,
                 .expected = "tokens or pixels that an encoder predicts",
                 .advice = advice});
  };
  if (run.is_whole_model())
    refuse("train.objective", "is masked, but a whole model returns only class scores",
           "use a sequence layer inside the program's encoder");
  if (run.model_config.receptive_field > 0)
    refuse("model.receptive_field",
           "cuts sequences into blocks, whose hidden positions are not predicted",
           "set model.receptive_field=0");
  const std::optional<ValueInput> values = run.make_task()->shape().values;
  if (values && (values->stored_as_float || values->channels > 1))
    refuse("train.objective", "is masked, but the inputs are numbers without levels",
           "import the data as tokens");
  if (!values && run.train.masked_loss == "l1")
    refuse("train.masked_loss", "is l1, but the inputs are tokens",
           "set train.masked_loss=cross_entropy, or task.input=values for pixels");
}

// Settings of masked pretraining would have no effect.
void refuse_unmasked(const TrainConfig& train) {
  const TrainConfig usual;
  const auto refuse = [](const char* where) {
    throw Error({.where = where,
                 .what = "is set, but the run predicts labels and hides nothing",
                 .expected = "train.objective=masked",
                 .advice = "set train.objective=masked too, or leave this setting out"});
  };
  if (train.mask_fraction != usual.mask_fraction) refuse("train.mask_fraction");
  if (train.masked_loss != usual.masked_loss) refuse("train.masked_loss");
}

struct OwnGroup {
  std::string name;
  GroupConfig defaults;
};

// The groups of the layer of `run`, of which all but the groups is known.
std::vector<OwnGroup> groups_of(const RunConfig& run) {
  std::vector<OwnGroup> groups;
  for (const mixers::GroupSpec& group : run.mixer_spec().groups) {
    groups.push_back({std::string(group.name), group_defaults(group)});
  }
  if (!mixers::is_python_class(run.model)) return groups;
  const models::ModelConfig& model = run.model_config;
  const mixers::LayerShape shape{
      .model_dim = model.embed_dim,
      .attention = {.heads = model.heads,
                    .head_dim = std::max<int64_t>(1, model.qkv_dim / model.heads)},
      .max_length = run.make_task()->shape().length + (model.pooling == "cls" ? 1 : 0)};
  for (const mixers::PythonGroup& group : mixers::python_groups(run.mixer_settings, shape)) {
    groups.push_back({group.name,
                      {.learning_rate = group.learning_rate,
                       .weight_decay = group.weight_decay.value_or(run.train.weight_decay)}});
  }
  return groups;
}

// [groups.NAME], each with the layer's values for the settings that are not given.
GroupConfigs read_groups(const ConfigTable& given, const RunConfig& run) {
  GroupConfigs groups;
  std::vector<std::string> known;
  for (const OwnGroup& group : groups_of(run)) {
    known.push_back(group.name);
    ConfigTable settings = write_config(group.defaults);
    merge(settings, section(given, group.name.c_str()));
    groups[group.name] = read_config<GroupConfig>(settings, "groups." + group.name);
  }
  for (const auto& [name, value] : given) {
    if (groups.contains(name)) continue;
    throw Error({.where = value.where,
                 .what = run.model + " has no group of parameters " + in_quotes(name),
                 .advice = known.empty() ? "it has none of its own: all follow [train]"
                                         : suggestion(name, known)});
  }
  return groups;
}

// Replaces `mixer.whole = true` by a table of the task's facts that a whole model needs.
void describe_task_to_whole_model(const RunConfig& run, ConfigTable& mixer) {
  const ConfigValue* given = mixer.find(kWholeModel);
  if (!given || given->as_table() || !mixers::is_python_class(run.model)) return;
  const bool* flag = std::get_if<bool>(&given->value);
  if (!flag) throw Error({.where = given->where, .what = "mixer.whole is not true or false"});
  const bool is_whole = *flag;
  mixer.erase(kWholeModel);
  if (!is_whole) return;
  const TaskShape shape = run.make_task()->shape();
  ConfigTable task;
  task.set("vocabulary", {shape.vocabulary, ""});
  task.set("classes", {shape.num_classes, ""});
  task.set("length", {shape.length, ""});
  task.set("towers", {shape.num_towers, ""});
  task.set("values", {shape.values.has_value(), ""});
  if (shape.values && shape.values->channels > 1) {
    task.set("channels", {shape.values->channels, ""});
  }
  mixer.set(kWholeModel, {task, ""});
}

RunConfig from_sections(const std::string& task, const std::string& model,
                        const std::string& preset, uint64_t seed, const ConfigTable& settings) {
  RunConfig run{.task = task,
                .model = model,
                .preset = preset,
                .seed = seed,
                .task_settings = {},
                .mixer_settings = {},
                .model_config = {},
                .train = {},
                .groups = {},
                .initial_weights = {},
                .trained_on = {}};
  run.model_config = read_config<models::ModelConfig>(section(settings, "model"), "model");
  run.train = read_config<TrainConfig>(section(settings, "train"), "train");
  check_train_config(run.train);
  run.task_settings = run.task_spec().resolve(section(settings, "task"));
  ConfigTable mixer = section(settings, "mixer");
  if (mixers::is_python_class(model)) mixer.set("class", {model, "model"});
  describe_task_to_whole_model(run, mixer);
  run.mixer_settings = run.mixer_spec().resolve(mixer);
  run.groups = read_groups(section(settings, "groups"), run);
  if (!run.train.is_masked()) {
    refuse_unmasked(run.train);
    refuse_blind_readout(run);
  }
  refuse_unpredictable(run);
  return run;
}

}  // namespace

const tasks::TaskSpec& RunConfig::task_spec() const { return tasks::find_task(task); }
const mixers::LayerSpec& RunConfig::mixer_spec() const { return mixers::find_mixer(model); }
std::string RunConfig::model_title() const {
  if (mixers::is_python_class(model)) return model.substr(model.find(':') + 1);
  return std::string(mixer_spec().title);
}
std::string RunConfig::task_title() const {
  const std::string_view data = tasks::data_name_of(task);
  return std::string(task_spec().title) + (data.empty() ? "" : ": " + std::string(data));
}
std::unique_ptr<tasks::Task> RunConfig::make_task() const {
  return task_spec().make(task_settings);
}

void refuse_whole_model(const std::string& model) {
  throw Error({.where = model,
               .what = "is a whole model, without the encoder that this command works on",
               .expected = "a sequence layer"});
}

bool RunConfig::is_whole_model() const {
  return mixers::is_python_class(model) && mixer_settings.find(kWholeModel);
}

std::optional<Masking> RunConfig::masking() const {
  if (!train.is_masked()) return std::nullopt;
  return Masking{
      .fraction = train.mask_fraction > 0 ? train.mask_fraction : task_spec().mask_fraction,
      .as_values = train.masked_loss == "l1",
      .seed = seed};
}

void refuse_masked(const RunConfig& run, const std::string& what) {
  if (!run.train.is_masked()) return;
  throw Error({.where = "train.objective",
               .what = "is masked: the run predicts its inputs and has no classes for " + what,
               .expected = "a run that learns labels",
               .advice = "take one that began with its weights (--init-from)"});
}

std::unique_ptr<models::Model> RunConfig::make_any_model(const TaskShape& shape,
                                                         at::Device device) const {
  if (is_whole_model())
    return std::make_unique<models::PythonModel>(shape, mixer_settings, seed, device);
  return std::unique_ptr<models::Model>(new models::SequenceClassifier(make_model(shape, device)));
}

models::SequenceClassifier RunConfig::make_model(const TaskShape& shape, at::Device device) const {
  if (is_whole_model()) refuse_whole_model(model);
  const models::Execution execution{
      .activations = train.precision == "bf16" ? at::kBFloat16 : at::kFloat,
      .device = device,
      .recompute = train.recompute,
      .group_cost = train.trim_padding
                        ? std::optional(models::group_cost_on(device, model_config.embed_dim))
                        : std::nullopt};
  const models::Output output = !train.is_masked()          ? models::Output::kClasses
                                : train.masked_loss == "l1" ? models::Output::kHiddenValues
                                                            : models::Output::kHiddenTokens;
  return {shape, model_config, mixer_spec(), mixer_settings, seed, execution, output};
}

tasks::Split RunConfig::split_of(const tasks::Task& task, const tasks::Dataset& dataset,
                                 const std::string& name) const {
  const tasks::Split split = task.split(dataset, name);
  return train.token_order == "shuffled" ? split.with_shuffled_tokens() : split;
}

ConfigTable RunConfig::to_table() const {
  ConfigTable table;
  ConfigTable& run = table.table("run");
  run.set("task", {task, ""});
  run.set("model", {model, ""});
  run.set("preset", {preset, ""});
  run.set("seed", {static_cast<int64_t>(seed), ""});
  if (!initial_weights.empty()) run.set("initial_weights", {initial_weights, ""});
  if (!trained_on.empty()) run.set("trained_on", {trained_on, ""});
  table.set("task", {task_settings, ""});
  table.set("model", {write_config(model_config), ""});
  table.set("mixer", {mixer_settings, ""});
  table.set("train", {write_config(train), ""});
  if (!train.is_masked()) {  // settings without effect: they do not change the hashes of such runs
    for (const char* key : {"objective", "mask_fraction", "masked_loss"}) {
      table.table("train").erase(key);
    }
  }
  for (const auto& [name, group] : groups) {
    table.table("groups").set(name, {write_config(group), ""});
  }
  return table;
}

RunConfig RunConfig::from_table(const ConfigTable& table) {
  const ConfigTable& run = section(table, "run");
  const auto header = read_config<RunHeader>(run, "run");
  ConfigTable settings = table;
  settings.erase("run");
  refuse_unknown_sections(settings);
  RunConfig read = from_sections(header.task, header.model, header.preset,
                                 static_cast<uint64_t>(header.seed), settings);
  read.initial_weights = header.initial_weights;
  read.trained_on = header.trained_on;
  return read;
}

std::string config_folder() {
  std::error_code ignored;
  if (const char* named = std::getenv("LRA_CONFIGS")) {
    if (fs::is_directory(fs::path(named) / "tasks", ignored)) return named;
    throw Error({.where = "LRA_CONFIGS",
                 .what = "names " + in_quotes(named) + ", which holds no folder 'tasks' of presets",
                 .expected = "the checkout's configs folder, or one like it",
                 .advice = "unset the variable, or correct it"});
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& base :
       {program, program.parent_path(), program.parent_path() / "share/lra", fs::path(".")}) {
    if (fs::is_directory(base / "configs/tasks", ignored)) return (base / "configs").string();
  }
  throw Error({.where = "configs",
               .what = "the folder of presets was not found next to the program",
               .advice = "set LRA_CONFIGS to the checkout's configs folder"});
}

bool is_model_preset(const std::string& preset) {
  return std::ranges::find(kModelPresets, preset) != std::end(kModelPresets);
}

std::vector<std::string> preset_names(const std::string& task) {
  std::vector<std::string> names;
  for (const auto& [key, value] : parse_toml_file(task_file(task))) {
    if (value.as_table()) names.push_back(key);
  }
  return names;
}

std::vector<std::string> preset_names(const std::string& task, const std::string& model) {
  std::vector<std::string> names = preset_names(task);
  if (mixers::is_python_class(model)) return names;
  const ConfigTable file = parse_toml_file(model_file(model));
  for (const std::string preset : kModelPresets) {
    const char* of = preset == kPretrainingPreset ? kFineTuningPreset : preset.c_str();
    if (section(file, of).find(task_name(task))) names.push_back(preset);
  }
  return names;
}

namespace {

// A number of steps that sets changed beside epochs or examples would be ignored.
void refuse_two_lengths(int64_t steps_before, const TrainConfig& train) {
  if ((train.epochs == 0 && train.examples == 0) || train.steps == steps_before) return;
  const std::string other = train.epochs > 0 ? "train.epochs" : "train.examples";
  throw Error({.where = "train.steps",
               .what = "is set, and " + other + " decides the number of steps",
               .expected = "one of them",
               .advice = "leave it out, or set " + other + "=0"});
}

}  // namespace

RunConfig resolve_run(const std::string& task, const std::string& model, const std::string& preset,
                      uint64_t seed, const ConfigTable& overrides,
                      const std::vector<std::string>& sets) {
  (void)tasks::find_task(task);
  (void)mixers::find_mixer(model);
  ConfigTable settings;
  merge_section(settings, task_layers(task, model, preset));
  merge_model_layers(settings, model, task, preset);
  merge(settings, overrides);
  const ConfigTable before = section(settings, "train");
  const ConfigValue* const steps = before.find("steps");
  const int64_t* const steps_before = steps ? std::get_if<int64_t>(&steps->value) : nullptr;
  for (const std::string& set : sets) apply_override(settings, set);
  refuse_unknown_sections(settings);
  RunConfig run = from_sections(task, model, preset, seed, settings);
  refuse_two_lengths(steps_before ? *steps_before : TrainConfig{}.steps, run.train);
  return run;
}

namespace {

// RUN/checkpoints or RUN/checkpoints/step_N in the place of RUN.
void refuse_checkpoint_folder(const std::string& path) {
  const fs::path folder = fs::path(path).lexically_normal();
  const fs::path whole = folder.has_filename() ? folder : folder.parent_path();
  const bool is_step = whole.parent_path().filename() == "checkpoints";
  if (!is_step && whole.filename() != "checkpoints") return;
  const fs::path run = is_step ? whole.parent_path().parent_path() : whole.parent_path();
  throw Error(
      {.where = path,
       .what = "is a folder of checkpoints, not of a run",
       .expected = "the run's folder, " + in_quotes(run.empty() ? "." : run.string()),
       .advice = is_step ? "its weights are chosen with --checkpoint " + whole.filename().string()
                         : "name the folder above it"});
}

}  // namespace

StoredRun read_run(const RunFolder& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder.record(), ignored)) {
    refuse_checkpoint_folder(folder.path);
    const bool is_file = std::filesystem::is_regular_file(folder.path, ignored);
    throw Error(
        {.where = folder.path,
         .what = is_file ? "is a file, not the folder of a run" : "is not the folder of a run",
         .expected = "a folder with config.toml and record.json",
         .advice = is_file ? "name the folder that holds the file"
                           : "start a run with 'lra train TASK MODEL --out FOLDER'"});
  }
  // The file unchanged: settings that this version has and the run's did not have are not a change.
  const ConfigTable settings = parse_toml_file(folder.config());
  StoredRun run{.config = RunConfig::from_table(settings),
                .record = read_consistent_record(folder.record())};
  const std::string hash = config_hash(settings);
  if (hash == run.record.config_hash) return run;
  // Settings that change are written into the record first: a run that was killed in between still
  // has the file of its earlier part.
  for (const EarlierPart& part : run.record.earlier_parts.value_or(std::vector<EarlierPart>{})) {
    if (part.config_hash != hash) continue;
    run.config = RunConfig::from_table(run.record.config);
    return run;
  }
  throw Error({.where = folder.config(),
               .what = "differs from the settings that the run started with",
               .expected = "the settings in record.json",
               .advice = "restore config.toml and record.json of the same run"});
}

namespace {

// Settings that a run may change when it continues: its length, its schedule, its evaluation, its
// logs and checkpoints. All others have determined its steps so far.
constexpr std::string_view kMayChange[] = {
    "steps",         "epochs",          "examples",         "max_seconds",     "patience",
    "learning_rate", "schedule",        "warmup_steps",     "cycle_steps",     "weight_decay",
    "clip_norm",     "eval_every",      "eval_batch_size",  "eval_examples",   "test_examples",
    "log_every",     "test_checkpoint", "checkpoint_every", "keep_checkpoints"};

}  // namespace

ChangedRun with_changes(const StoredRun& run, const std::vector<std::string>& sets) {
  ConfigTable settings = run.config.to_table();
  for (const std::string& set : sets) {
    ConfigTable given;
    apply_override(given, set);
    refuse_unknown_sections(given);
    for (const auto& [key, value] : section(given, "train")) {
      if (std::ranges::find(kMayChange, key) != std::end(kMayChange)) continue;
      if (!write_config(run.config.train).find(key)) continue;  // refused below, with a suggestion
      throw Error({.where = value.where,
                   .what = "cannot change in a run that continues",
                   .expected = "a setting of its length, schedule, validations or checkpoints",
                   .advice = "start a new run, with its weights if you like (--init-from)"});
    }
    if (section(given, "train").empty()) {
      throw Error({.where = "--set " + set,
                   .what = "cannot change in a run that continues",
                   .expected = "a setting of [train]",
                   .advice = "start a new run, with its weights if you like (--init-from)"});
    }
    merge(settings, given);
  }
  ChangedRun changed{.config = RunConfig::from_table(settings), .change = {}};
  refuse_two_lengths(run.config.train.steps, changed.config.train);
  // Both have the same keys in the same order, one line each: "steps=200".
  std::istringstream before(canonical_text(write_config(run.config.train))),
      now(canonical_text(write_config(changed.config.train)));
  for (std::string was, is; std::getline(before, was) && std::getline(now, is);) {
    if (is == was) continue;
    changed.change += (changed.change.empty() ? "train." : ", train.") + is + " instead of " +
                      was.substr(was.find('=') + 1);
  }
  if (!changed.change.empty()) {
    changed.config.trained_on = std::to_string(run.record.steps) + " " + run.record.config_hash;
  }
  return changed;
}

ConfigTable data_settings_of(const RunConfig& run) {
  ConfigTable settings;
  if (run.task_spec().settings_of) settings.set("task", {run.task_settings, ""});
  return settings;
}

RunConfig preset_of(const RunConfig& run) {
  ConfigTable own = data_settings_of(run);
  if (mixers::is_python_class(run.model)) own.set("mixer", {run.mixer_settings, ""});
  return resolve_run(run.task, run.model, run.preset, run.seed, own, {});
}

std::optional<int64_t> preset_steps(const RunConfig& run) {
  const std::vector<std::string> names = preset_names(run.task, run.model);
  if (std::find(names.begin(), names.end(), run.preset) == names.end()) return std::nullopt;
  return preset_of(run).train.steps;
}

}  // namespace lra::training
