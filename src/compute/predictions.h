// The predictions of a model as a table of all examples.
#pragma once

#include <string>

#include "data/dataset.h"
#include "tasks/task.h"
#include "training/loop/evaluate.h"
#include "training/run/loaded_run.h"

namespace lra::cli {

// Throws lra::Error for a file that exists already, and for a kind of file other than .csv.
void refuse_predictions_file(const std::string& path);
// CSV with a row for each example, in the order of the split: index, length, label, prediction, the
// probability of each class, and the properties that the task knows.
void write_predictions(const std::string& path, const training::EvaluationResult& result,
                       const training::LoadedRun& run, const Dataset& dataset,
                       const std::string& split);

}  // namespace lra::cli
