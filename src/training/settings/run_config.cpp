#include "training/settings/run_config.h"

#include <algorithm>

#include "base/config.h"
#include "base/quoted.h"
#include "mixers/all.h"
#include "mixers/python_layer.h"
#include "tasks/all.h"
#include "training/settings/budget.h"
#include "training/settings/config_sections.h"

namespace lra::training {
namespace {

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

// Added after the first published runs, whose hashes stay valid: not written at their defaults.
struct LaterSetting {
  std::string_view name, of;  // the task of "task", the model of "mixer"
};
constexpr LaterSetting kLaterSettings[] = {
    {"train.class_weights", ""},      {"train.label_smoothing", ""},
    {"task.min_args", "listops"},     {"task.tree", "listops"},
    {"task.operators", "listops"},    {"task.filler", "listops"},
    {"mixer.causal", "transformer"},  {"mixer.causal", "local"},
    {"mixer.causal", "bigbird"},      {"mixer.causal", "linear_transformer"},
    {"mixer.causal", "performer"},    {"mixer.forget_gate", "min_gru"},
    {"mixer.complex_states", "mamba"}};

void erase_later_settings(ConfigTable& table, const std::string& section, const ConfigTable& usual,
                          std::string_view of) {
  ConfigTable& settings = table.table(section);
  for (const LaterSetting& later : kLaterSettings) {
    if (later.of != of || !later.name.starts_with(section + ".")) continue;
    const std::string_view key = later.name.substr(section.size() + 1);
    const ConfigValue *now = settings.find(key), *before = usual.find(key);
    if (now && before && setting_text(*now) == setting_text(*before)) settings.erase(key);
  }
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

// Refuses to predict places where there are none, or neither tokens nor gray levels there.
void refuse_unpredictable(const RunConfig& run) {
  const bool labels_places = run.task_spec().labels_places;
  if (!run.train.is_masked() && !labels_places) return;
  const auto refuse = [](const std::string& where, const std::string& what,
                         const std::string& advice) {
    throw Error({.where = where,
                 .what = what,
                 .expected = "an encoder that predicts places",
                 .advice = advice});
  };
  if (run.is_whole_model())
    refuse(run.model, "is a whole model, which returns one row of scores for a sequence",
           "use a sequence layer inside the program's encoder");
  if (run.model_config.receptive_field > 0)
    refuse("model.receptive_field", "cuts sequences into blocks, whose places are not predicted",
           "set model.receptive_field=0");
  if (labels_places &&
      (run.train.is_masked() || run.train.class_weights != TrainConfig{}.class_weights))
    refuse(run.train.is_masked() ? "train.objective" : "train.class_weights",
           "is for tasks with a label for each sequence; " + run.task + " labels places",
           "leave it out");
  if (labels_places) return;
  const std::optional<ValueInput> values = run.make_task()->shape().values;
  if (values && (values->stored_as_float || values->channels > 1))
    refuse("train.objective", "is masked, but the inputs are numbers without levels",
           "import the data as tokens");
  const bool has_weights = run.train.class_weights != "none";
  if (has_weights || run.train.label_smoothing > 0) {
    refuse(has_weights ? "train.class_weights" : "train.label_smoothing",
           "is for classes, and the run predicts its inputs", "leave it out");
  }
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

// The groups of the layer of `run`, of which all but the groups is known, and their defaults.
std::vector<std::pair<std::string, GroupConfig>> groups_of(const RunConfig& run) {
  std::vector<std::pair<std::string, GroupConfig>> groups;
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
  for (const auto& [name, defaults] : groups_of(run)) {
    known.push_back(name);
    ConfigTable settings = write_config(defaults);
    merge(settings, section(given, name));
    groups[name] = read_config<GroupConfig>(settings, "groups." + name);
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
  if (shape.values && shape.values->channels > 1)
    task.set("channels", {shape.values->channels, ""});
  if (run.train.precision == "bf16") task.set("bf16", {true, ""});
  mixer.set(kWholeModel, {task, ""});
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

bool is_later_setting(std::string_view name) {
  return std::ranges::find(kLaterSettings, name, &LaterSetting::name) != std::end(kLaterSettings);
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
  if (!train.is_masked()) {
    if (!task_spec().labels_places) return std::nullopt;
    return Masking{.labeled = make_task()};
  }
  return Masking{
      .fraction = train.mask_fraction > 0 ? train.mask_fraction : task_spec().mask_fraction,
      .as_values = train.masked_loss == "l1",
      .seed = seed};
}

void refuse_masked(const RunConfig& run, const std::string& what) {
  if (!run.train.is_masked()) {
    if (!run.task_spec().labels_places) return;
    throw Error(
        {.where = run.task,
         .what =
             "is answered at many places of a sequence: there is no one label of it for " + what,
         .expected = "a task with a label for each sequence",
         .advice = "take a run of another task"});
  }
  throw Error({.where = "train.objective",
               .what = "is masked: the run predicts its inputs and has no classes for " + what,
               .expected = "a run that learns labels",
               .advice = "take one that began with its weights (--init-from)"});
}

Split RunConfig::split_of(const tasks::Task& task, const Dataset& dataset,
                          const std::string& name) const {
  const Split split = task.split(dataset, name);
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
  erase_later_settings(table, "train", write_config(TrainConfig{}), "");
  erase_later_settings(table, "task", task_spec().resolve({}), task);
  if (!mixers::is_python_class(model))
    erase_later_settings(table, "mixer", mixer_spec().resolve({}), model);
  for (const auto& [name, group] : groups) {
    table.table("groups").set(name, {write_config(group), ""});
  }
  return table;
}

RunConfig RunConfig::from_sections(const std::string& task, const std::string& model,
                                   const std::string& preset, uint64_t seed,
                                   const ConfigTable& settings) {
  RunConfig run;
  run.task = task;
  run.model = model;
  run.preset = preset;
  run.seed = seed;
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

}  // namespace lra::training
