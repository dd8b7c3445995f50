#include "training/settings/run_warnings.h"

#include "base/text_format.h"
#include "mixers/python_layer.h"
#include "training/settings/presets.h"

namespace lra::training {

int64_t count_longer(const Split& split, const TaskShape& shape) {
  int64_t count = 0;
  for (int64_t i = 0; i < split.size(); ++i) {
    bool is_longer = false;
    for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
      is_longer = is_longer || split.sequence_length(i, tower) > shape.length;
    }
    count += is_longer;
  }
  return count;
}

namespace {

// One sentence; empty if there are no such examples.
std::string cut_warning(const RunConfig& config, const tasks::Task& task, const Dataset& dataset) {
  const TaskShape shape = task.shape(), usual = preset_of(config).make_task()->shape();
  const bool is_own = config.task_spec().settings_of != nullptr;  // no preset knows its length
  if (!is_own && shape.length >= usual.length) return "";
  const Split train = task.split(dataset, "train"), test = task.split(dataset, "test");
  const int64_t cut_train = count_longer(train, shape), cut_test = count_longer(test, shape);
  if (cut_train + cut_test == 0) return "";
  return "task.length=" + std::to_string(shape.length) + " cuts " + thousands(cut_train) +
         " of the " + thousands(train.size()) + " training examples and " + thousands(cut_test) +
         " of the " + thousands(test.size()) + " test examples" +
         (is_own ? "" : "; the preset reads " + thousands(usual.length));
}

}  // namespace

std::vector<std::string> setting_warnings(const RunConfig& config, const tasks::Task& task,
                                          const Dataset& dataset) {
  std::vector<std::string> warnings;
  if (const int64_t field = config.model_config.receptive_field; field > 0) {
    warnings.push_back("a control: no token sees beyond pieces of " + thousands(field) +
                       " tokens (model.receptive_field)");
  }
  if (config.train.token_order == "shuffled") {
    warnings.push_back("a control: tokens are in random order (train.token_order)");
  }
  if (config.task_spec().is_diagnostic && !mixers::is_python_class(config.model) &&
      !is_causal(config.mixer_settings)) {
    warnings.push_back(
        "this layer sees the whole sequence, and others of this task only what came "
        "before: compare it with its like (docs/diagnostics.md)");
  }
  if (std::string cut = cut_warning(config, task, dataset); !cut.empty()) {
    warnings.push_back(std::move(cut));
  }
  return warnings;
}

std::vector<std::string> selection_warnings(const RunRecord& record) {
  if (!record.test || record.validation != "test" || record.checkpoint != "best") return {};
  return {
      "the test split chose the weights that it tests (task.validation is test, "
      "train.test_checkpoint best): its accuracy is too high"};
}

}  // namespace lra::training
