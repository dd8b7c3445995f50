// Weights that a run begins with, and the run that they are of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/scaling.h"
#include "records/run_record.h"
#include "training/settings/run_config.h"
#include "training/settings/run_folder.h"

namespace lra::training {

// The record next to the weights in `file` (exported weights, or a run's checkpoints/step_N/) if it
// is that of `weights_of`. Throws lra::Error for a record that contradicts itself.
struct RecordOfWeights {
  RunFolder folder;
  RunRecord record;
};
std::optional<RecordOfWeights> record_of_weights(const std::string& file,
                                                 const std::optional<RunIdentity>& weights_of);

// Warnings about weights that fit the model of `run` though they were trained for something else:
// another mixer, other settings of the model, or other data; and what is found if these data hold
// examples of `test`, the run's. has_classifier: the weights hold one that fits.
struct WeightsFindings {
  std::vector<std::string> warnings = {};
  std::vector<CheckFinding> data_checks = {};
};
WeightsFindings findings_of_weights(const std::string& file,
                                    const std::optional<RunIdentity>& weights_of,
                                    bool has_classifier, const RunConfig& run,
                                    const std::string& data_hash, const ScaledSplit& test);

}  // namespace lra::training
