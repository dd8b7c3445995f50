#include "training/loop/stepper.h"

#include <algorithm>
#include <cmath>

#include "layers/on_device.h"
#include "ops/adam.h"
#include "ops/precision.h"
#include "training/loop/step_profiler.h"
#include "training/settings/budget.h"

namespace lra::training {
namespace {

// True if a step keeps gradients and roundings of all parameters until its end, to make each in few
// launches. At most 192 MB: Synthesizers have tables of eight times that. Not around a user's code,
// which may change weights in a pass, have gradients in other layouts, or add them in several.
bool makes_all_at_once(const models::Model& model, const at::Tensor& values) {
  constexpr int64_t kMost = int64_t{1} << 25;
  return !values.is_cpu() && values.numel() <= kMost && !model.has_python_classes();
}

}  // namespace

Stepper::Stepper(const models::Model& model, FlatParameters& parameters, const TrainConfig& config,
                 uint64_t seed, Ranks& ranks, const GroupConfigs& groups)
    : model_(model),
      parameters_(parameters),
      config_(config),
      seed_(seed),
      ranks_(ranks),
      sum_(parameters, ranks),
      at_once_(makes_all_at_once(model, parameters.values)),
      statistics_(model.running_statistics()) {
  for (const FlatParameters::Segment& segment : parameters.segments()) {
    const auto group = groups.find(segment.group);
    config_of_segment_.push_back(group == groups.end() ? config : of_group(config, group->second));
  }
  if (config.on_nonfinite != "skip") return;
  for (const at::Tensor& t : parameters.state()) before_step_.push_back(t.clone());
}

StepLoss Stepper::gradients(std::span<const Batch> parts, int64_t step, std::span<double> shared) {
  StepLoss sum = queue_gradients(parts, step, shared);
  sum.gradient_norm = read_back(sum, {norm_}).at(0);
  return sum;
}

StepLoss Stepper::step(std::span<const Batch> parts, int64_t step, int64_t num_updates,
                       std::span<double> shared) {
  StepLoss sum = queue_gradients(parts, step, shared);
  update(step, num_updates);
  // This norm is finite only if all weights and buffers are.
  const std::vector<double> norms = read_back(sum, {norm_, ops::norm_of(parameters_.values)});
  sum.gradient_norm = norms.at(0);
  sum.weights_are_finite = std::isfinite(norms.at(1));
  return sum;
}

StepLoss Stepper::queue_gradients(std::span<const Batch> parts, int64_t step,
                                  std::span<double> shared) {
  StepLoss sum;
  unread_.clear();  // of a step that failed
  for (const Batch& part : parts) sum.examples += part.labels_B.size(0);
  const bool has_places = parts[0].input.places_M.defined();
  const double all_examples = count_of_all(sum.examples, has_places);
  const at::Tensor& values = parameters_.values;
  const ops::RoundedParameters rounded(
      values, at_once_ && config_.precision == "bf16" ? at::kBFloat16 : values.scalar_type());
  // Several ranks send the flat array while the backward pass fills it, and gradients that arrive
  // in several passes are to be added there: autograd may give two parameters the same memory.
  const bool gathers = at_once_ && ranks_.count() == 1 && parts.size() == 1 && !config_.recompute;
  gathers ? parameters_.release_gradients() : parameters_.zero_gradients();
  const std::vector<at::Tensor> state = parameters_.state();
  for (size_t i = 0; i < before_step_.size(); ++i) before_step_[i].copy_(state[i]);
  for (size_t i = 0; i < parts.size(); ++i) {
    const Batch part = to_device(parts[i], parameters_.values.device());
    const models::StepRandom random{
        .training = true,
        .seed = seed_,
        .step = step,
        .part = static_cast<uint32_t>(static_cast<size_t>(ranks_.rank()) * parts.size() + i)};
    const models::BatchLoss loss =
        traced("forward", [&] { return model_.loss(part.input, part.labels_B, random, loss_); });
    const auto count = static_cast<double>(part.labels_B.size(0));
    if (i + 1 == parts.size()) sum_.begin();
    traced("backward", [&] { (loss.mean * (count / all_examples)).backward(); });
    unread_.push_back({loss.mean.detach(), loss.correct, count});
    sum.tokens += part.num_tokens;
    sum.computed_tokens += model_.num_positions(part.input);
  }
  if (gathers) parameters_.gather_gradients();
  statistics_sums_ = layers::take_sums(statistics_);
  traced("sum over ranks", [&] { add_up(sum, shared); });
  norm_ = ops::norm_of(parameters_.gradients);
  return sum;
}

std::vector<double> Stepper::read_back(StepLoss& sum, const std::vector<at::Tensor>& others) {
  std::vector<at::Tensor> all;
  const auto add = [&](const at::Tensor& t) { all.push_back(t.to(at::kDouble).view({-1})); };
  for (const Unread& part : unread_) {
    add(part.mean_loss);
    add(part.correct);
  }
  for (const at::Tensor& t : others) {
    if (t.defined()) add(t);
  }
  const at::Tensor numbers = at::cat(all).cpu();
  const double *from = numbers.const_data_ptr<double>(), *end = from + numbers.numel();
  for (const Unread& part : unread_) {
    sum.loss_sum += *from++ * part.labels;
    sum.correct += static_cast<int64_t>(*from++);
  }
  unread_.clear();
  return {from, end};
}

double Stepper::count_of_all(int64_t own, bool has_places) const {
  if (!has_places) return static_cast<double>(own * ranks_.count());
  auto count = static_cast<double>(own);
  ranks_.sum({&count, 1});
  return count;
}

// This takes one message in addition to the gradients. Counts are exact as doubles. It goes through
// main memory, so results are read before the update; if a rank is lost, nothing has changed.
void Stepper::add_up(StepLoss& loss, std::span<double> shared) {
  if (ranks_.count() == 1) return;
  const std::vector<double> statistics = read_back(loss, {statistics_sums_});
  sum_.end();
  std::vector<double> numbers = {
      loss.loss_sum, static_cast<double>(loss.correct), static_cast<double>(loss.examples),
      static_cast<double>(loss.tokens), static_cast<double>(loss.computed_tokens)};
  const size_t own = numbers.size(), seen = statistics.size();
  numbers.insert(numbers.end(), statistics.begin(), statistics.end());
  numbers.insert(numbers.end(), shared.begin(), shared.end());
  ranks_.sum(numbers);
  loss.loss_sum = numbers[0];
  loss.correct = static_cast<int64_t>(numbers[1]);
  loss.examples = static_cast<int64_t>(numbers[2]);
  loss.tokens = static_cast<int64_t>(numbers[3]);
  loss.computed_tokens = static_cast<int64_t>(numbers[4]);
  const std::span<const double> rest = std::span(numbers).subspan(own);
  if (seen > 0) {
    const at::Tensor sums = at::tensor(at::ArrayRef<double>(rest.data(), seen), at::kDouble);
    statistics_sums_ = layers::on_device(sums, parameters_.values.device());
  }
  std::ranges::copy(rest.subspan(seen), shared.begin());
}

void Stepper::update(int64_t step, int64_t num_updates) {
  traced("update", [&] {
    for (size_t i = 0; i < config_of_segment_.size(); ++i) {
      const TrainConfig& c = config_of_segment_[i];
      const auto of_segment = [&](const at::Tensor& flat) {
        const FlatParameters::Segment& segment = parameters_.segments()[i];
        return flat.narrow(0, segment.offset, segment.count);
      };
      at::Tensor values = of_segment(parameters_.values), m = of_segment(parameters_.m),
                 v = of_segment(parameters_.v);
      ops::adam_step(values, of_segment(parameters_.gradients), m, v,
                     {learning_rate(c, step), c.beta1, c.beta2, c.eps, c.weight_decay}, num_updates,
                     1, norm_, config_.clip_norm);
    }
  });
  layers::follow(statistics_, statistics_sums_);
}

void Stepper::undo_step() {
  LRA_CHECK(!before_step_.empty());
  const std::vector<at::Tensor> state = parameters_.state();
  for (size_t i = 0; i < state.size(); ++i) at::Tensor(state[i]).copy_(before_step_[i]);
}

}  // namespace lra::training
