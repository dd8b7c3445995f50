#include "models/python_model.h"

#include "models/layout.h"

namespace lra::models {

PythonModel::PythonModel(const TaskShape& shape, const ConfigTable& settings, uint64_t seed,
                         at::Device device)
    : device_(device),
      module_(register_module(
          "model", mixers::kPythonLayer.make(layers::Initializer(seed, device).of("model"),
                                             settings, {.max_length = shape.length}))) {}

at::Tensor PythonModel::forward(const ModelInput& input, const StepRandom& random) const {
  const uint64_t key = random.key(0, 0);
  layers::Context context{.key = key,
                          .step_key = random.step_key(0, 0),
                          .training = random.training,
                          .step = random.step,
                          .lengths_B = input.lengths_B,
                          .part = random.part};
  if (input.lengths_B.defined()) {
    context.mask_BL = mask_of_lengths(input.lengths_B, input.length(), device_);
  }
  return module_->forward(input.tokens_BL.defined() ? input.tokens_BL : input.values_BLC, context);
}

}  // namespace lra::models
