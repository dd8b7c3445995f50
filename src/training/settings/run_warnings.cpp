#include "training/settings/run_warnings.h"

#include <algorithm>
#include <cmath>

#include "base/text_format.h"
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

std::vector<std::string> setting_warnings(const RunConfig& config) {
  constexpr double kMostDecay = 0.1, kMostDropout = 0.8;
  std::vector<std::string> warnings;
  const double decay = config.train.learning_rate * config.train.weight_decay;
  if (decay > kMostDecay) {
    warnings.push_back("train.weight_decay takes " + percent(decay, 0) +
                       " of every weight at each step (learning_rate * weight_decay)");
  }
  const double dropout =
      std::max(config.model_config.dropout, config.model_config.attention_dropout);
  if (dropout >= kMostDropout) {
    warnings.push_back("dropout zeroes " + percent(dropout, 0) +
                       " of the numbers: was the share that is kept meant?");
  }
  if (const int64_t field = config.model_config.receptive_field; field > 0) {
    warnings.push_back("a control: no token sees beyond pieces of " + thousands(field) +
                       " tokens (model.receptive_field)");
  }
  if (config.train.token_order == "shuffled") {
    warnings.push_back("a control: tokens are in random order (train.token_order)");
  }
  return warnings;
}

std::vector<std::string> loss_warnings(const RunRecord& record, int64_t num_classes) {
  constexpr double kMostTimes = 10;
  if (!record.test) return {};
  const double chance = std::log(static_cast<double>(num_classes));
  if (record.test->loss <= kMostTimes * chance) return {};
  return {"the loss on the test is " + fixed(record.test->loss, 2) +
          ", that of equal probabilities " + fixed(chance, 2) +
          ": did training diverge? A lower train.learning_rate may help"};
}

std::vector<std::string> selection_warnings(const RunRecord& record) {
  if (!record.test || record.validation != "test" || record.checkpoint != "best") return {};
  return {
      "the test split chose the weights that it tests (task.validation is test, "
      "train.test_checkpoint best): its accuracy is too high"};
}

}  // namespace lra::training
