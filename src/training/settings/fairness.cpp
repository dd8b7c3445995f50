#include "training/settings/fairness.h"

#include <algorithm>
#include <map>

#include "base/config.h"
#include "base/error.h"
#include "base/text_format.h"
#include "training/settings/presets.h"

namespace lra::training {
namespace {

constexpr double kMostParameters = 1.10;
constexpr const char* kFreeForAll = "free-for-all";

// The first of the fixed sizes that `run` changes, as "layers 2 instead of 4"; empty when none.
std::string changed_size(const models::ModelConfig& run, const models::ModelConfig& base) {
  using Config = models::ModelConfig;
  constexpr std::pair<const char*, int64_t Config::*> kSizes[] = {{"layers", &Config::layers},
                                                                  {"embed_dim", &Config::embed_dim},
                                                                  {"qkv_dim", &Config::qkv_dim},
                                                                  {"mlp_dim", &Config::mlp_dim}};
  for (const auto& [name, size] : kSizes) {
    if (run.*size == base.*size) continue;
    return std::string(name) + " " + std::to_string(run.*size) + " instead of " +
           std::to_string(base.*size);
  }
  return "";
}

// Settings that cannot change a score: when something is written, and how work is divided to save
// memory.
constexpr std::string_view kFreeSettings[] = {
    "train.eval_every",       "train.eval_batch_size",  "train.eval_examples",
    "train.checkpoint_every", "train.keep_checkpoints", "train.log_every",
    "train.trim_padding",     "train.prefetch",         "train.loader_threads",
    "train.recompute",        "train.memory_check"};

// Values that the paper has in addition to that of the preset.
struct PublishedValue {
  std::string_view task, preset, key, value;
};
constexpr PublishedValue kPublishedValues[] = {
    {"listops", "paper", "train.steps", "10000"},  // version 1 of the leaderboard, Table 6
    // Appendix A.1.2: the best of four lengths.
    {"text", "paper", "task.length", "1000"},
    {"text", "paper", "task.length", "2000"},
    {"text", "paper", "task.length", "3000"},
    {"text", "paper", "task.length", "4000"},
};

bool is_published(const RunConfig& run, const std::string& key, const std::string& value) {
  return std::ranges::any_of(kPublishedValues, [&](const PublishedValue& p) {
    return p.task == run.task && p.preset == run.preset && p.key == key && p.value == value;
  });
}

// Settings that have no effect on this task, model or run.
bool is_without_effect(const RunConfig& run, const std::string& key) {
  if (key == "model.attention_dropout") return !run.mixer_spec().facts.attention_dropout;
  if (key == "train.max_skips") return run.train.on_nonfinite == "stop";
  return key == "model.pair_features" && run.make_task()->shape().num_towers == 1;
}

// The settings that a comparison asks about, "model.heads" -> "2": those of all sections but [run]
// that have an effect on this task and model, without what is free to choose.
std::map<std::string, std::string> scored_settings(const RunConfig& run) {
  std::map<std::string, std::string> settings = setting_texts(run.to_table());
  std::erase_if(settings, [&](const auto& setting) {
    const std::string& key = setting.first;
    return key.starts_with("run.") ||
           std::ranges::find(kFreeSettings, key) != std::end(kFreeSettings) ||
           is_without_effect(run, key);
  });
  return settings;
}

// The first setting in [mixer], or outside it, that `run` changes from its preset, as "train.steps
// 10 instead of 5000"; empty when none.
std::string changed_setting(const RunConfig& run, bool in_mixer) {
  const RunConfig preset = preset_of(run);
  const auto expected = scored_settings(preset);
  for (const auto& [key, value] : scored_settings(run)) {
    if (key.starts_with("mixer.") != in_mixer || is_published(run, key, value)) continue;
    const auto before = expected.find(key);
    if (before != expected.end() && before->second == value) continue;
    if (before != expected.end()) return key + " " + value + " instead of " + before->second;
    // Others have an effect only because another setting was changed too.
    if (is_later_setting(key)) return key + " " + value;
  }
  return "";
}

// "a, b and c"
std::string enumerated(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  }
  return text;
}

}  // namespace

std::string size_unlike(const ConfigTable& settings, const SplitSizes& data,
                        const ConfigTable* usual) {
  std::vector<std::string> found, wanted;
  const auto compare = [&](const char* key, int64_t count, const char* of) {
    const auto in = [&](const ConfigTable& table) {
      const ConfigValue* setting = table.find(key);
      return setting ? std::get<int64_t>(setting->value) : count;
    };
    const int64_t expected = in(settings);
    if (count == expected || (usual && in(*usual) == expected)) return;
    found.push_back(thousands(count) + of);
    wanted.push_back(thousands(expected));
  };
  compare("num_train", data.train, " training");
  compare("num_val", data.val, " validation");
  compare("num_test", data.test, " test");
  compare("num_images", data.train + data.val + data.test, "");
  if (found.empty()) return "";
  return "data of " + enumerated(found) + " examples instead of " + enumerated(wanted);
}

namespace {

// Reason why `run` is another setting than its preset, the mechanism aside; empty if it is the
// same. Self-pretrained weights are not one.
std::string departure(const RunConfig& run, const std::optional<SplitSizes>& data,
                      bool is_self_pretrained, const std::string& edited) {
  if (!edited.empty()) return edited;
  if (!run.initial_weights.empty() && !is_self_pretrained) return "began with trained weights";
  if (!run.trained_on.empty()) return "its settings changed while it was trained";
  if (run.preset == "small") return "the small preset is not a published setting";
  const std::string setting = changed_setting(run, false);
  return setting.empty() && data ? size_unlike(run.task_settings, *data) : setting;
}

}  // namespace

RunRecord judge(const RunConfig& run, const std::optional<SplitSizes>& data,
                const std::string& pretraining, const std::string& edited) {
  // The size of a model's own recipe is compared with the paper's base model.
  const bool own_recipe = is_model_preset(run.preset);
  const RunConfig base = resolve_run(run.task, kBaseModel, own_recipe ? "paper" : run.preset,
                                     run.seed, data_settings_of(run), {});
  const std::string departed = departure(run, data, !pretraining.empty(), edited);
  RunRecord record;
  record.num_parameters = count_parameters(run);
  record.base_parameters = count_parameters(base);
  record.division = kFreeForAll;
  std::string& reason = record.division_reason;
  reason = changed_size(run.model_config, base.model_config);
  if (run.train.is_masked()) {
    const bool shuffled = run.train.token_order == "shuffled";
    record.division = shuffled ? kFreeForAll : "pretraining";
    reason = shuffled ? "predicts masked inputs whose order was lost (train.token_order)"
                      : "predicts masked inputs, not labels";
    return record;
  }
  if (run.task_spec().is_diagnostic) {
    record.division = "diagnostic";
    const std::string setting = changed_setting(run, false);
    reason = "a task outside of the arena, " +
             (setting.empty() ? "settings of the " + run.preset + " preset" : setting);
    return record;
  }
  record.published_setting = departed.empty() && pretraining.empty();
  const double ratio =
      static_cast<double>(record.num_parameters) / static_cast<double>(record.base_parameters);
  const std::string times = fixed(ratio, 2) + " times the parameters of the base Transformer";
  if (run.is_whole_model()) reason = "a whole model instead of a layer of the encoder";
  if (reason.empty() || run.preset == "small") reason = departed;
  if (own_recipe && reason.empty()) reason = "a recipe of the model's own authors";
  if (reason.empty() && ratio > kMostParameters) reason = times + "; at most 1.10";
  if (!pretraining.empty()) {
    record.division = "self-pretrained";
    reason = pretraining + "; " +
             (reason.empty() ? "settings of the " + run.preset + " preset, " + times : reason);
    return record;
  }
  if (!reason.empty()) return record;
  const std::string mechanism = changed_setting(run, true);
  record.division = "apples-to-apples";
  reason = "settings of the " + run.preset + " preset" +
           (mechanism.empty() ? "" : " but for the mechanism's " + mechanism) + ", " + times +
           ", nothing pretrained";
  return record;
}

}  // namespace lra::training
