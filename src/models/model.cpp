#include "models/model.h"

#include <algorithm>

#include "mixers/python_layer.h"
#include "models/parameter_names.h"
#include "ops/product.h"

namespace lra::models {
namespace {

// A product: the library's sum of a whole tensor depends on the number of threads.
at::Tensor sum_of(const at::Tensor& losses_N) {
  return ops::product(at::ones_like(losses_N).unsqueeze(0), losses_N.unsqueeze(1)).squeeze();
}

}  // namespace

at::Tensor loss_of(const at::Tensor& scores_NC, const at::Tensor& labels_N,
                   at::Reduction::Reduction reduction) {
  if (!labels_N.is_floating_point()) {
    return at::cross_entropy_loss(scores_NC, labels_N, {}, reduction);
  }
  const at::Tensor sum = sum_of((scores_NC.squeeze(1) - labels_N).abs());
  return reduction == at::Reduction::Mean ? sum / labels_N.size(0) : sum;
}

at::Tensor loss_with(const LossSettings& settings, const at::Tensor& scores_NC,
                     const at::Tensor& labels_N) {
  const bool is_plain = !settings.weights_C.defined() && settings.label_smoothing == 0;
  if (is_plain || labels_N.is_floating_point()) {
    return loss_of(scores_NC, labels_N, at::Reduction::Mean);
  }
  const at::Tensor losses_N =
      at::cross_entropy_loss(scores_NC, labels_N, settings.weights_C, at::Reduction::None,
                             /*ignore_index=*/-100, settings.label_smoothing);
  return sum_of(losses_N) / labels_N.size(0);
}

at::Tensor are_right(const at::Tensor& scores_NC, const at::Tensor& labels_N) {
  if (!labels_N.is_floating_point()) return scores_NC.argmax(1).eq(labels_N);
  return (scores_NC.squeeze(1) - labels_N).abs().lt(0.5);
}

BatchLoss Model::loss(const ModelInput& input, const at::Tensor& labels, const StepRandom& random,
                      const LossSettings& settings) const {
  const at::Tensor scores = forward(input, random);
  return {.mean = loss_with(settings, scores, labels), .correct = are_right(scores, labels).sum()};
}

std::vector<Parameter> Model::parameter_list() const { return named_parameters_of(*this); }
std::vector<Parameter> Model::buffer_list() const { return named_buffers_of(*this); }

std::vector<layers::RunningStatistics*> Model::running_statistics() const {
  std::vector<layers::RunningStatistics*> found;
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* one = dynamic_cast<layers::RunningStatistics*>(module.get())) found.push_back(one);
  }
  return found;
}

bool Model::has_python_classes() const {
  return std::ranges::any_of(modules(/*include_self=*/false),
                             [](const auto& module) { return mixers::is_python_layer(*module); });
}

int64_t Model::num_parameters() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameter_list()) count += parameter.tensor.numel();
  return count;
}

}  // namespace lra::models
