// The rules under which a result may be compared with others (reference: the benchmark's README and
// Tay et al. 2021, appendix C): nothing pretrained, the task's data and setting unchanged except
// for the mechanism itself, at most 10 % more parameters than the task's base Transformer. Runs
// that began with weights pretrained on the task's own inputs are compared among themselves.
#pragma once

#include <optional>
#include <string>

#include "records/run_record.h"
#include "training/settings/run_config.h"

namespace lra::training {

// The model whose size others are compared with.
inline constexpr const char* kBaseModel = "transformer";

// A record of only the parameters of `run` and of the base model, the division, its reason, and
// whether the setting is a published one. `data` has the actual numbers of examples; without it the
// task's numbers are assumed. `pretraining` is the result of self_pretraining() for the run's
// initial weights, `edited` that of edited_presets(): settings of edited presets are nobody's.
RunRecord judge(const RunConfig& run, const std::optional<SplitSizes>& data = {},
                const std::string& pretraining = "", const std::string& edited = "");

// Numbers of examples of `data` other than those in the `settings` of [task]: num_train, num_val,
// num_test, or num_images of all; with `usual`, only those whose setting differs there. "data of 20
// training and 6 test examples instead of 30 and 10"; empty if there are none.
std::string size_unlike(const ConfigTable& settings, const SplitSizes& data,
                        const ConfigTable* usual = nullptr);

// Parameters of the model that `run` describes. Needs tensors: make_model.cpp.
int64_t count_parameters(const RunConfig& run);

}  // namespace lra::training
