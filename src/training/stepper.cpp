#include "training/stepper.h"

#include <algorithm>
#include <cmath>

#include "ops/adam.h"
#include "training/schedule.h"
#include "training/step_profiler.h"

namespace lra::training {
namespace {

// Adds the mean losses and the hits of all parts to `sum`. A device other than the CPU is waited
// for here.
void read_back(std::span<const Batch> parts, const std::vector<at::Tensor>& losses,
               const std::vector<at::Tensor>& correct, StepLoss& sum) {
  const at::Tensor means = at::stack(losses).cpu();
  for (size_t i = 0; i < parts.size(); ++i) {
    sum.loss_sum += means[static_cast<int64_t>(i)].item<double>() *
                    static_cast<double>(parts[i].labels_B.size(0));
  }
  sum.correct = at::stack(correct).sum().item<int64_t>();
}

}  // namespace

Stepper::Stepper(const models::SequenceClassifier& model, FlatParameters& parameters,
                 const TrainConfig& config, uint64_t seed, Ranks& ranks)
    : model_(model),
      parameters_(parameters),
      config_(config),
      seed_(seed),
      ranks_(ranks),
      sum_(parameters, ranks) {
  if (config.on_nonfinite != "skip") return;
  for (const at::Tensor* t : {&parameters.values, &parameters.m, &parameters.v}) {
    before_update_.push_back(t->clone());
  }
}

StepLoss Stepper::gradients(std::span<const Batch> parts, int64_t step, std::span<double> shared) {
  StepLoss sum;
  std::vector<at::Tensor> losses, correct;  // of the parts
  for (const Batch& part : parts) sum.examples += part.labels_B.size(0);
  const auto all_examples = static_cast<double>(sum.examples * ranks_.count());
  parameters_.zero_gradients();
  for (size_t i = 0; i < parts.size(); ++i) {
    const Batch part = to_device(parts[i], parameters_.values.device());
    const models::StepRandom random{
        .training = true,
        .seed = seed_,
        .step = step,
        .part = static_cast<uint32_t>(static_cast<size_t>(ranks_.rank()) * parts.size() + i)};
    const at::Tensor logits = traced("forward", [&] { return model_.forward(part.input, random); });
    const at::Tensor loss = at::cross_entropy_loss(logits, part.labels_B);
    const auto count = static_cast<double>(part.labels_B.size(0));
    if (i + 1 == parts.size()) sum_.begin();
    traced("backward", [&] { (loss * (count / all_examples)).backward(); });
    losses.push_back(loss.detach());
    correct.push_back(logits.argmax(1).eq(part.labels_B).sum());
    sum.tokens += part.num_tokens;
  }
  read_back(parts, losses, correct, sum);
  traced("sum over ranks", [&] { add_up(sum, shared); });
  sum.gradient_norm = ops::gradient_norm(parameters_.gradients);
  return sum;
}

// One message besides the gradients. Counts are exact as doubles.
void Stepper::add_up(StepLoss& loss, std::span<double> shared) {
  if (ranks_.count() == 1) return;
  sum_.end();
  std::vector<double> numbers = {loss.loss_sum, static_cast<double>(loss.correct),
                                 static_cast<double>(loss.examples),
                                 static_cast<double>(loss.tokens)};
  const size_t own = numbers.size();
  numbers.insert(numbers.end(), shared.begin(), shared.end());
  ranks_.sum(numbers);
  loss.loss_sum = numbers[0];
  loss.correct = static_cast<int64_t>(numbers[1]);
  loss.examples = static_cast<int64_t>(numbers[2]);
  loss.tokens = static_cast<int64_t>(numbers[3]);
  std::copy(numbers.begin() + static_cast<std::ptrdiff_t>(own), numbers.end(), shared.begin());
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
