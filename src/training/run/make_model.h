// The model of a run.
#pragma once

#include <memory>

#include "models/classifier.h"
#include "training/settings/run_config.h"

namespace lra::training {

// The model of a run for a task of `shape`, with the weights of its seed. On the device `meta`,
// parameters have only shapes. Throws lra::Error for a whole model that is a Python class.
models::SequenceClassifier make_model(const RunConfig& run, const TaskShape& shape,
                                      at::Device device = at::kCPU);
// The same, but whole models from Python are allowed.
std::unique_ptr<models::Model> make_any_model(const RunConfig& run, const TaskShape& shape,
                                              at::Device device = at::kCPU);

}  // namespace lra::training
