// A whole model that is a Python class: tokens or values to class scores (docs/python.md).
#pragma once

#include <memory>

#include "base/task_shape.h"
#include "mixers/python_layer.h"
#include "mixers/sequence_layer.h"
#include "models/model.h"

namespace lra::models {

class PythonModel : public Model {
 public:
  // `settings` is [mixer] of a run; the module's weights are a function of the seed.
  PythonModel(const TaskShape& shape, const ConfigTable& settings, uint64_t seed,
              at::Device device);

  // Throws mixers::PythonError when the module fails or returns anything but
  // logits [B, num_classes].
  at::Tensor forward(const ModelInput& input, const StepRandom& random) const override;
  at::Device device() const override { return device_; }

 private:
  at::Device device_;
  std::shared_ptr<mixers::SequenceLayer> module_;
};

}  // namespace lra::models
