#include "training/fairness.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/text_format.h"
#include "models/classifier.h"

namespace lra::training {
namespace {

constexpr double kMostParameters = 1.10;
constexpr const char* kBaseModel = "transformer";

// The first of the fixed sizes that `run` changes, as "layers 2 instead of 4"; empty when none.
std::string changed_size(const models::ModelConfig& run, const models::ModelConfig& base) {
  const auto differs = [](const char* name, int64_t value, int64_t expected) -> std::string {
    if (value == expected) return "";
    return std::string(name) + " " + std::to_string(value) + " instead of " +
           std::to_string(expected);
  };
  for (const std::string& text : {differs("layers", run.layers, base.layers),
                                  differs("embed_dim", run.embed_dim, base.embed_dim),
                                  differs("qkv_dim", run.qkv_dim, base.qkv_dim),
                                  differs("mlp_dim", run.mlp_dim, base.mlp_dim)}) {
    if (!text.empty()) return text;
  }
  return "";
}

// Settings that cannot move a score: what is written when, and how work is cut for memory.
constexpr std::string_view kFreeSettings[] = {
    "train.eval_every",       "train.eval_batch_size",  "train.eval_examples",
    "train.checkpoint_every", "train.keep_checkpoints", "train.log_every",
    "train.trim_padding",     "train.prefetch",         "train.loader_threads"};

// Settings that have no effect on this task or model.
bool is_without_effect(const RunConfig& run, const std::string& key) {
  if (key == "model.attention_dropout") return !run.mixer_spec().attention_dropout;
  return key == "model.pair_features" && run.make_task()->shape().num_towers == 1;
}

// "section.key" to value, of [task], [model] and [train], without the free ones.
std::map<std::string, std::string> scored_settings(const RunConfig& run) {
  std::map<std::string, std::string> settings;
  std::istringstream lines(canonical_text(run.to_table()));
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    const std::string key = line.substr(0, line.find_last_not_of(" =", equals) + 1);
    if (key.starts_with("run.") || key.starts_with("mixer.")) continue;
    if (std::ranges::find(kFreeSettings, key) != std::end(kFreeSettings)) continue;
    if (is_without_effect(run, key)) continue;
    settings[key] = line.substr(line.find_first_not_of(" =", equals));
  }
  return settings;
}

// The first setting outside [mixer] that `run` changes from its preset, as "train.steps 10 instead
// of 5000"; empty when none.
std::string changed_setting(const RunConfig& run) {
  const RunConfig preset = resolve_run(run.task, run.model, run.preset, run.seed, {}, {});
  const auto expected = scored_settings(preset);
  for (const auto& [key, value] : scored_settings(run)) {
    const auto before = expected.find(key);
    LRA_CHECK(before != expected.end());  // a resolved config has every key
    if (before->second != value) return key + " " + value + " instead of " + before->second;
  }
  return "";
}

}  // namespace

int64_t count_parameters(const RunConfig& run) {
  return run.make_model(run.make_task()->shape(), at::kMeta).num_parameters();
}

Fairness judge(const RunConfig& run) {
  const RunConfig base = resolve_run(run.task, kBaseModel, run.preset, run.seed, {}, {});
  Fairness result{.parameters = count_parameters(run),
                  .base_parameters = count_parameters(base),
                  .division = "free-for-all",
                  .reason = ""};
  const double ratio =
      static_cast<double>(result.parameters) / static_cast<double>(result.base_parameters);
  const std::string size = changed_size(run.model_config, base.model_config);
  const std::string setting = changed_setting(run);
  if (run.preset == "small") {
    result.reason = "the small preset is not a published setting";
  } else if (!size.empty()) {
    result.reason = size;
  } else if (!setting.empty()) {
    result.reason = setting;
  } else if (ratio > kMostParameters) {
    result.reason = fixed(ratio, 2) + " times the parameters of the base Transformer; at most 1.10";
  } else {
    result.division = "apples-to-apples";
    result.reason = "settings of the " + run.preset + " preset, " + fixed(ratio, 2) +
                    " times the parameters of the base Transformer, nothing pretrained";
  }
  return result;
}

}  // namespace lra::training
