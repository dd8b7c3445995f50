#include "training/stepper.h"

#include <cmath>

#include "ops/adam.h"
#include "training/schedule.h"
#include "training/step_profiler.h"

namespace lra::training {

Stepper::Stepper(const models::SequenceClassifier& model, FlatParameters& parameters,
                 const TrainConfig& config, uint64_t seed)
    : model_(model), parameters_(parameters), config_(config), seed_(seed) {
  if (config.on_nonfinite != "skip") return;
  for (const at::Tensor* t : {&parameters.values, &parameters.m, &parameters.v}) {
    before_update_.push_back(t->clone());
  }
}

StepLoss Stepper::gradients(std::span<const Batch> parts, int64_t step) {
  StepLoss sum;
  for (const Batch& part : parts) sum.examples += part.labels_B.size(0);
  parameters_.zero_gradients();
  for (size_t i = 0; i < parts.size(); ++i) {
    const Batch& part = parts[i];
    const models::StepRandom random{
        .training = true, .seed = seed_, .step = step, .part = static_cast<uint32_t>(i)};
    const at::Tensor logits = traced("forward", [&] { return model_.forward(part.input, random); });
    const at::Tensor loss = at::cross_entropy_loss(logits, part.labels_B);
    const auto count = static_cast<double>(part.labels_B.size(0));
    traced("backward", [&] { (loss * (count / static_cast<double>(sum.examples))).backward(); });
    sum.loss_sum += loss.item<double>() * count;
    sum.correct += logits.argmax(1).eq(part.labels_B).sum().item<int64_t>();
    sum.tokens += part.num_tokens;
  }
  sum.gradient_norm = ops::gradient_norm(parameters_.gradients);
  return sum;
}

void Stepper::update(int64_t step, int64_t num_updates, double gradient_norm) {
  if (!before_update_.empty()) {
    before_update_[0].copy_(parameters_.values);
    before_update_[1].copy_(parameters_.m);
    before_update_[2].copy_(parameters_.v);
  }
  const TrainConfig& t = config_;
  const double clip =
      t.clip_norm > 0 && gradient_norm > t.clip_norm ? t.clip_norm / gradient_norm : 1.0;
  traced("update", [&] {
    ops::adam_step(parameters_.values, parameters_.gradients, parameters_.m, parameters_.v,
                   {learning_rate(t, step), t.beta1, t.beta2, t.eps, t.weight_decay}, num_updates,
                   clip);
  });
}

void Stepper::undo_update() {
  LRA_CHECK(!before_update_.empty());
  parameters_.values.copy_(before_update_[0]);
  parameters_.m.copy_(before_update_[1]);
  parameters_.v.copy_(before_update_[2]);
}

// A sum over all weights is finite only when every one of them is.
bool Stepper::weights_are_finite() const {
  return std::isfinite(ops::gradient_norm(parameters_.values));
}

}  // namespace lra::training
