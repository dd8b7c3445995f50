#include "training/run/make_model.h"

#include "models/python_model.h"
#include "training/settings/fairness.h"

namespace lra::training {

std::unique_ptr<models::Model> make_any_model(const RunConfig& run, const TaskShape& shape,
                                              at::Device device) {
  if (run.is_whole_model())
    return std::make_unique<models::PythonModel>(shape, run.mixer_settings, run.seed, device);
  return std::unique_ptr<models::Model>(
      new models::SequenceClassifier(make_model(run, shape, device)));
}

models::SequenceClassifier make_model(const RunConfig& run, const TaskShape& shape,
                                      at::Device device) {
  if (run.is_whole_model()) refuse_whole_model(run.model);
  const TrainConfig& train = run.train;
  const int64_t group_cost =
      models::group_cost_on(device, run.model_config.embed_dim, run.mixer_spec().is_quadratic());
  const models::Execution execution{
      .activations = train.precision == "bf16" ? at::kBFloat16 : at::kFloat,
      .device = device,
      .recompute = train.recompute,
      .group_cost = train.trim_padding ? std::optional(group_cost) : std::nullopt};
  const models::Output output = train.is_masked()
                                    ? (train.masked_loss == "l1" ? models::Output::kHiddenValues
                                                                 : models::Output::kHiddenTokens)
                                : run.task_spec().labels_places ? models::Output::kPlaceClasses
                                                                : models::Output::kClasses;
  return {shape, run.model_config, run.mixer_spec(), run.mixer_settings, run.seed, execution,
          output};
}

int64_t count_parameters(const RunConfig& run) {
  return make_any_model(run, run.make_task()->shape(), at::kMeta)->num_parameters();
}

}  // namespace lra::training
