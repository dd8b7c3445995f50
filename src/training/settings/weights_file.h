// Files of weights without their tensors: the run and the step that they are of, and whether they
// are what was written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "records/run_identity.h"
#include "records/run_record.h"
#include "training/loop/step_guard.h"

namespace lra::training {

inline constexpr const char* kWeightsFile = "model.safetensors";
// The folder of a checkpoint.
inline constexpr const char* kStepPrefix = "step_";
inline std::string step_name(int64_t step) { return kStepPrefix + std::to_string(step); }

// Mean loss and accuracy since the last line of metrics.
struct RunningMean {
  double loss_sum = 0;
  int64_t correct = 0, count = 0;

  void add(double sum_of_losses, int64_t num_correct, int64_t num_examples) {
    loss_sum += sum_of_losses;
    correct += num_correct;
    count += num_examples;
  }
  double loss() const { return count ? loss_sum / static_cast<double>(count) : 0; }
  double accuracy() const {
    return count ? static_cast<double>(correct) / static_cast<double>(count) : 0;
  }
  bool operator==(const RunningMean&) const = default;
};

// State, in addition to the tensors, that a resume needs to continue as if nothing had happened. It
// has no times, so the files of a resumed run equal those of an uninterrupted one byte for byte.
struct TrainProgress {
  int64_t step = 0;  // updates made
  // Counts as in StepLoss. computed_tokens is -1 in checkpoints of programs that computed more
  // padding, and dropped other numbers.
  int64_t tokens = 0, computed_tokens = 0;
  int64_t last_eval_step = 0;
  double best_accuracy = -1;  // on validation
  int64_t best_step = -1;
  RunningMean mean = {};  // of the steps since the last line of metrics
  Health health = {};     // written only when something is in it
  bool operator==(const TrainProgress&) const = default;
};

struct LoadedWeights {
  TrainProgress progress = {};
  std::optional<RunIdentity> run = {};  // nothing: the file does not say
  std::string hash = {};                // weights_hash of what it holds
};

// The contents of a file of weights, which may be in any folder but that of another step. Unless
// `expected` is empty, they are refused when they are those of no run in it; then `advice` is
// given.
LoadedWeights describe_weights(const SafetensorsFile& file, std::span<const RunIdentity> expected,
                               const std::string& advice);
LoadedWeights describe_weights(const std::string& path, std::span<const RunIdentity> expected);

// Returns the hash of the data of the tensors, 32 hex digits.
std::string write_weights(const std::string& path, const std::vector<TensorView>& tensors,
                          const TrainProgress& progress, const RunIdentity& run);
std::string hash_of_tensors(const std::vector<TensorView>& tensors);
// The same of a file. Throws lra::Error for one that another program wrote or that is damaged.
std::string check_weights_hash(const SafetensorsFile& file);
bool has_weights_hash(const SafetensorsFile& file);
TrainProgress progress_in(const SafetensorsFile& file);
// Throws lra::Error.
[[noreturn]] void refuse_weights(const SafetensorsFile& file, const std::string& what,
                                 const std::string& expected);

// Maps "last", "best", "step_N" or the path of a model.safetensors to the file. An analysis names
// its checkpoint by the same word. A folder that 'lra export' wrote has a single file, next to its
// record.
std::string checkpoint_file(const std::string& run, const std::string& checkpoint);

// True for a folder that 'lra export' wrote: weights next to the record instead of checkpoints.
bool is_exported(const std::string& run);

// "best" or "last": the checkpoint that the test figure of a run is of; "step_N" where the best was
// damaged; of an unfinished run, the last.
std::string tested_checkpoint(const RunRecord& record);

// Throws lra::Error for weights of the run itself that contradict its record: `file` is in
// checkpoints/best or checkpoints/latest and has another step, or has the tested step (of a stopped
// run: the last one) and another hash. A run that is running, or was lost, may be ahead of its
// record: then only `best` has to be the best validation up to its own step.
void refuse_other_weights(const std::string& file, const LoadedWeights& found,
                          const RunRecord& run);

// One line for each checkpoint next to a file named record.json that contradicts the record or
// cannot be read: best, latest and that of the tested step, if they exist. Reads these files.
std::vector<std::string> check_checkpoints_beside(const RunRecord& run,
                                                  const std::string& record_path);

}  // namespace lra::training
