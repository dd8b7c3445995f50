#include "training/loop/stepper.h"

#include <algorithm>

#include "ops/adam.h"
#include "ops/precision.h"
#include "training/loop/step_profiler.h"
#include "training/settings/budget.h"

namespace lra::training {
namespace {

// Parameters of which a GPU keeps gradients or roundings of their own until the end of a step: 128
// MB of each. Synthesizers have tables of eight times that.
constexpr int64_t kMostAtOnce = int64_t{1} << 25;

// Adds the mean losses and the hits of all parts to `sum`, in one copy: it waits for a device.
void read_back(std::span<const Batch> parts, const std::vector<at::Tensor>& losses,
               const std::vector<at::Tensor>& correct, StepLoss& sum) {
  const at::Tensor hits = at::stack(correct).sum().to(at::kDouble).view({1});
  const at::Tensor numbers = at::cat({at::stack(losses).to(at::kDouble), hits}).cpu();
  for (size_t i = 0; i < parts.size(); ++i) {
    sum.loss_sum += numbers[static_cast<int64_t>(i)].item<double>() *
                    static_cast<double>(parts[i].labels_B.size(0));
  }
  sum.correct = numbers[-1].item<int64_t>();
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
      statistics_(model.running_statistics()) {
  for (const FlatParameters::Segment& segment : parameters.segments()) {
    const auto group = groups.find(segment.group);
    config_of_segment_.push_back(group == groups.end() ? config : of_group(config, group->second));
  }
  int64_t num_sums = 0;
  for (const layers::RunningStatistics* one : statistics_) num_sums += one->num_sums();
  statistics_sums_.resize(static_cast<size_t>(num_sums));
  if (config.on_nonfinite != "skip") return;
  for (const at::Tensor& t : parameters.state()) before_step_.push_back(t.clone());
}

// Calls visit(layer, its sums) for each layer with running statistics.
template <typename Visit>
void Stepper::for_each_statistics(Visit visit) {
  std::span<double> rest(statistics_sums_);
  for (layers::RunningStatistics* one : statistics_) {
    const auto count = static_cast<size_t>(one->num_sums());
    visit(*one, rest.first(count));
    rest = rest.subspan(count);
  }
}

StepLoss Stepper::gradients(std::span<const Batch> parts, int64_t step, std::span<double> shared) {
  StepLoss sum;
  std::vector<at::Tensor> losses, correct;  // of the parts
  for (const Batch& part : parts) sum.examples += part.labels_B.size(0);
  const bool has_places = parts[0].input.places_M.defined();
  const double all_examples = count_of_all(sum.examples, has_places);
  const at::Tensor& values = parameters_.values;
  const bool at_once = !values.is_cpu() && values.numel() <= kMostAtOnce;
  const ops::RoundedParameters rounded(
      values, at_once && config_.precision == "bf16" ? at::kBFloat16 : values.scalar_type());
  // Several ranks send the flat array while the backward pass fills it.
  const bool gathers = at_once && ranks_.count() == 1;
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
    losses.push_back(loss.mean.detach());
    correct.push_back(loss.correct);
    sum.tokens += part.num_tokens;
    sum.computed_tokens += model_.num_positions(part.input);
  }
  if (gathers) parameters_.gather_gradients();
  read_back(parts, losses, correct, sum);
  for_each_statistics(
      [](layers::RunningStatistics& one, std::span<double> sums) { one.take_sums(sums); });
  traced("sum over ranks", [&] { add_up(sum, shared); });
  sum.gradient_norm = ops::gradient_norm(parameters_.gradients);
  return sum;
}

double Stepper::count_of_all(int64_t own, bool has_places) const {
  if (!has_places) return static_cast<double>(own * ranks_.count());
  auto count = static_cast<double>(own);
  ranks_.sum({&count, 1});
  return count;
}

// This takes one message in addition to the gradients. Counts are exact as doubles.
void Stepper::add_up(StepLoss& loss, std::span<double> shared) {
  if (ranks_.count() == 1) return;
  sum_.end();
  std::vector<double> numbers = {
      loss.loss_sum, static_cast<double>(loss.correct), static_cast<double>(loss.examples),
      static_cast<double>(loss.tokens), static_cast<double>(loss.computed_tokens)};
  const size_t own = numbers.size(), seen = statistics_sums_.size();
  numbers.insert(numbers.end(), statistics_sums_.begin(), statistics_sums_.end());
  numbers.insert(numbers.end(), shared.begin(), shared.end());
  ranks_.sum(numbers);
  loss.loss_sum = numbers[0];
  loss.correct = static_cast<int64_t>(numbers[1]);
  loss.examples = static_cast<int64_t>(numbers[2]);
  loss.tokens = static_cast<int64_t>(numbers[3]);
  loss.computed_tokens = static_cast<int64_t>(numbers[4]);
  const std::span<const double> rest = std::span(numbers).subspan(own);
  std::ranges::copy(rest.first(seen), statistics_sums_.begin());
  std::ranges::copy(rest.subspan(seen), shared.begin());
}

void Stepper::update(int64_t step, int64_t num_updates, double gradient_norm) {
  const double most = config_.clip_norm;
  const double clip = most > 0 && gradient_norm > most ? most / gradient_norm : 1.0;
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
                     clip);
    }
  });
  for_each_statistics(
      [](layers::RunningStatistics& one, std::span<const double> sums) { one.follow(sums); });
}

void Stepper::undo_step() {
  LRA_CHECK(!before_step_.empty());
  const std::vector<at::Tensor> state = parameters_.state();
  for (size_t i = 0; i < state.size(); ++i) at::Tensor(state[i]).copy_(before_step_[i]);
}

}  // namespace lra::training
