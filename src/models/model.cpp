#include "models/model.h"

namespace lra::models {

BatchLoss Model::loss(const ModelInput& input, const at::Tensor& labels_B,
                      const StepRandom& random) const {
  const at::Tensor logits = forward(input, random);
  return {.mean = at::cross_entropy_loss(logits, labels_B),
          .correct = logits.argmax(1).eq(labels_B).sum()};
}

int64_t Model::num_parameters() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameter_list()) count += parameter.tensor.numel();
  return count;
}

}  // namespace lra::models
