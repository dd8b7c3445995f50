#include "training/fairness.h"

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

}  // namespace

int64_t count_parameters(const RunConfig& run) {
  const models::SequenceClassifier model(run.make_task()->shape(), run.model_config,
                                         run.mixer_spec(), run.mixer_settings, run.seed);
  return model.num_parameters();
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
  if (run.preset == "small") {
    result.reason = "the small preset is not a published setting";
  } else if (!size.empty()) {
    result.reason = size;
  } else if (ratio > kMostParameters) {
    result.reason = fixed(ratio, 2) + " times the parameters of the base Transformer; at most 1.10";
  } else {
    result.division = "apples-to-apples";
    result.reason = "sizes of the " + run.preset + " preset, " + fixed(ratio, 2) +
                    " times the parameters of the base Transformer, nothing pretrained";
  }
  return result;
}

}  // namespace lra::training
