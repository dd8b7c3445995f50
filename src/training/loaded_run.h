// The model of a run on disk with the weights of one of its checkpoints, and the run's data: what
// evaluation and analyses begin with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/classifier.h"
#include "tasks/task.h"
#include "training/checkpoint.h"
#include "training/evaluate.h"
#include "training/flat_parameters.h"
#include "training/run_config.h"
#include "training/weights_choice.h"

namespace lra::training {

// "last", "best", "step_N" or the path of a model.safetensors -> the file. An analysis names its
// checkpoint by the same word. A run that 'lra export' wrote has one, beside its record.
std::string checkpoint_file(const std::string& run, const std::string& checkpoint);

// True for a folder that 'lra export' wrote: weights beside the record instead of checkpoints.
bool is_exported(const std::string& run);

// "best" or "last": the checkpoint that the test figure of a run is of; "step_N" where the best was
// damaged; of an unfinished run, the last.
std::string tested_checkpoint(const RunRecord& record);

// Throws lra::Error for weights that are the run's own and not what its record says of them: `file`
// lies in checkpoints/best or checkpoints/latest and is of another step, or is of the tested step
// (of a stopped run: of the last one) and has another hash. A run that is under way, or was lost,
// may be ahead of its record: only `best` has to be the best validation up to its own step.
void refuse_other_weights(const std::string& file, const LoadedWeights& found,
                          const RunRecord& run);

// One line for each checkpoint beside a file called record.json that its record contradicts, or
// that cannot be read: best, latest and that of the tested step, where they are. Reads these files.
std::vector<std::string> check_checkpoints_beside(const RunRecord& run,
                                                  const std::string& record_path);

enum class ModelPrecision {
  kAsTrained,  // train.precision
  kFloat32     // float32 activations, whatever the run was trained with
};

struct LoadedRun {
  // The model computes on `device`, whatever the run was trained on. Throws lra::Error for a folder
  // that is no run and a checkpoint that is missing, not its own or not what its record says.
  LoadedRun(const std::string& folder, const WeightsChoice& weights, ModelPrecision precision,
            at::Device device = at::kCPU);

  // The model as an encoder, which most analyses work on. Throws lra::Error for a whole model of
  // the user's (docs/python.md).
  const models::SequenceClassifier& encoder() const;
  // Empty, or whose weights these are when they are not the run's own.
  std::string foreign_weights() const;

  std::string folder;
  StoredRun stored;
  std::string checkpoint;  // which weights: as in WeightsChoice, never empty
  std::unique_ptr<tasks::Task> task;
  std::unique_ptr<models::Model> model;
  FlatParameters parameters;
  LoadedWeights weights;  // what the checkpoint says of itself
};

struct RunDataOptions {
  std::string root;         // --data
  bool other_data = false;  // data that the run was not made with will do
  bool quiet = false;
};

// The data of a run. Throws lra::Error when they are missing or others than the run was made with.
tasks::Dataset open_run_data(const LoadedRun& run, const RunDataOptions& options);

// A pass over the split with a bar on standard error; step is that of the weights. `limit` as of
// evaluate().
EvaluationResult evaluate_run(const LoadedRun& run, const tasks::Dataset& dataset,
                              const std::string& split, int64_t limit, bool quiet);

}  // namespace lra::training
