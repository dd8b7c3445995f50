#include "models/model.h"

#include "ops/product.h"

namespace lra::models {

at::Tensor loss_of(const at::Tensor& scores_NC, const at::Tensor& labels_N,
                   at::Reduction::Reduction reduction) {
  if (!labels_N.is_floating_point()) {
    return at::cross_entropy_loss(scores_NC, labels_N, {}, reduction);
  }
  // A product: the library's sum of a whole tensor depends on the number of threads.
  const at::Tensor errors_N = (scores_NC.squeeze(1) - labels_N).abs();
  const at::Tensor sum =
      ops::product(at::ones_like(errors_N).unsqueeze(0), errors_N.unsqueeze(1)).squeeze();
  return reduction == at::Reduction::Mean ? sum / labels_N.size(0) : sum;
}

at::Tensor are_right(const at::Tensor& scores_NC, const at::Tensor& labels_N) {
  if (!labels_N.is_floating_point()) return scores_NC.argmax(1).eq(labels_N);
  return (scores_NC.squeeze(1) - labels_N).abs().lt(0.5);
}

BatchLoss Model::loss(const ModelInput& input, const at::Tensor& labels,
                      const StepRandom& random) const {
  const at::Tensor scores = forward(input, random);
  return {.mean = loss_of(scores, labels, at::Reduction::Mean),
          .correct = are_right(scores, labels).sum()};
}

int64_t Model::num_parameters() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameter_list()) count += parameter.tensor.numel();
  return count;
}

}  // namespace lra::models
