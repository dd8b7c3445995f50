// Self-pretraining: weights of a masked run on the very data that they are then trained on (Amos,
// Berant and Gupta, Never Train from Scratch, ICLR 2024).
#pragma once

#include <optional>
#include <string>

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

// The masked run that the weights in `file` come from, according to `found`, the record next to
// them. For checkpoint step_0 of a run that itself began with such weights, it is the masked run in
// its record. `hash` is the weights_hash of the model that begins with them.
std::optional<Pretraining> pretraining_of(const std::string& file,
                                          const std::optional<RecordOfWeights>& found,
                                          const std::string& hash);

// "2,000 steps of masked pretraining on the task's own inputs" if `weights` are self-pretrained for
// a run of this task on data with this hash, that is, if they come from a masked run on the same
// data that started from random weights. Otherwise empty.
std::string self_pretraining(const RunConfig& run, const std::string& data_hash,
                             const std::optional<InitialWeights>& weights);

// True for the names of tensors that only a masked run has, or only one that learns labels: they
// may be absent from a file of the other kind.
bool is_of_masked_run(const std::string& tensor);
bool is_of_classifier(const std::string& tensor);

}  // namespace lra::training
