// The model of a run on disk with the weights of one of its checkpoints, and the run's data, for
// evaluation and analyses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/classifier.h"
#include "tasks/task.h"
#include "training/loop/evaluate.h"
#include "training/ranks/flat_parameters.h"
#include "training/run/checkpoint.h"
#include "training/settings/run_folder.h"
#include "training/settings/stored_run.h"

namespace lra::training {

enum class ModelPrecision {
  kAsTrained,  // train.precision
  kFloat32     // float32 activations without recomputation, regardless of the run's settings
};

struct LoadedRun {
  // The model computes on `device`, regardless of the device it was trained on. Throws lra::Error
  // for a folder that is not a run and for a checkpoint that is missing, not its own or contradicts
  // its record.
  LoadedRun(const std::string& folder, const WeightsChoice& weights, ModelPrecision precision,
            at::Device device = at::kCPU);

  // The model as an encoder, which most analyses work on. Throws lra::Error for a whole model of
  // the user's (docs/python.md).
  const models::SequenceClassifier& encoder() const;
  // The run that the weights belong to if it is another one; otherwise empty.
  std::string foreign_weights() const;
  // A sentence if the model is a Python class whose source is not that of the run any more.
  std::string changed_code() const;

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
Dataset open_run_data(const LoadedRun& run, const RunDataOptions& options);

// A pass over the split with a bar on standard error; step is that of the weights. `limit` and
// `all_probabilities` as of evaluate().
EvaluationResult evaluate_run(const LoadedRun& run, const Dataset& dataset,
                              const std::string& split, int64_t limit, bool quiet,
                              bool all_probabilities = false);

}  // namespace lra::training
