#include "training/run/memory_estimate.h"

#include <algorithm>
#include <functional>

#include "base/resources.h"
#include "base/text_format.h"
#include "models/python_model.h"
#include "training/run/tensor_memory.h"

namespace lra::training {
namespace {

// Small models are measured at the batch of the run, or near it.
constexpr double kProbeBytes = 1 << 30;

// Later steps of a long run hardly hold a more expensive batch.
constexpr int64_t kSearchedSteps = 10'000;

using Examples = std::vector<int64_t>;

// Result of a probe: the number of positions it computed, and the most bytes of tensors that it
// took.
struct Probe {
  int64_t positions = 0;
  double tensors = 0;
};

// The line through two probes.
double at_positions(int64_t positions, const Probe& few, const Probe& more) {
  const auto between = static_cast<double>(std::max<int64_t>(1, more.positions - few.positions));
  return few.tensors +
         (more.tensors - few.tensors) * static_cast<double>(positions - few.positions) / between;
}

struct Estimator {
  const models::Model& model;
  Stepper& stepper;
  const Split& split;
  const TaskShape& shape;
  const TrainConfig& config;
  const std::optional<Masking>& masking;

  // The most expensive micro-batch of the run, its longest example first.
  Examples most_expensive(uint64_t seed) const {
    const BatchOrder order(split.size(), config.batch_size, seed);
    const StepParts parts{.count = config.accumulate, .of = config.accumulate};
    const bool alike = !shape.has_padding || !config.trim_padding;
    const int64_t steps = alike ? 1 : std::min(config.steps, kSearchedSteps);
    Examples found;
    int64_t most = -1;
    for (int64_t step = 0; step < steps; ++step) {
      for (Examples& examples : micro_batches(order, step, parts)) {
        const int64_t now = positions(examples);
        if (now <= most) continue;
        most = now;
        found = std::move(examples);
      }
    }
    std::ranges::stable_sort(found, std::ranges::greater(),
                             [&](int64_t example) { return length(example); });
    return found;
  }

  int64_t longest_example() const {
    int64_t longest = 0;
    for (int64_t example = 1; example < split.size(); ++example) {
      if (length(example) > length(longest)) longest = example;
    }
    return longest;
  }

  int64_t positions(const Examples& examples) const {
    return model.num_positions(input_shape(split, examples, shape, config.trim_padding));
  }

  Probe train(const Examples& examples) const {
    return probe(examples,
                 [&](const Batch& batch) { (void)stepper.gradients(std::span(&batch, 1), 0); });
  }
  Probe infer(const Examples& examples) const {
    return probe(examples, [&](const Batch& batch) {
      const at::NoGradGuard no_grad;
      (void)model.forward(batch.input, {});
    });
  }

  int64_t length(int64_t example) const {
    int64_t longest = 0;
    for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
      longest = std::max(longest, split.sequence_length(example, tower));
    }
    return longest;
  }

  // One token shorter if the task has padding, so that there is a mask as in real batches.
  Probe probe(const Examples& examples, const std::function<void(const Batch&)>& work) const {
    Batch batch = make_batch(split, examples, shape, config.trim_padding);
    if (shape.has_padding) batch.input.lengths_B.sub_(1).clamp_min_(1);
    if (masking) hide_positions(batch, examples, shape, *masking, 0);
    // Buffers of Python classes may follow forward passes; a probe leaves no trace.
    const std::vector<models::Parameter> buffers = model.buffer_list();
    std::vector<at::Tensor> before;
    for (const models::Parameter& buffer : buffers) before.push_back(buffer.tensor.clone());
    const TensorMemory memory;
    work(batch);
    const auto peak_bytes = static_cast<double>(memory.peak_bytes());
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].tensor.copy_(before[i]);
    return {model.num_positions(batch.input), peak_bytes};
  }
};

// `count` of the examples, from the first on at equal distances.
Examples some_of(const Examples& examples, int64_t count) {
  Examples some;
  for (int64_t i = 0; i < count; ++i) {
    some.push_back(examples[static_cast<size_t>(i) * examples.size() / static_cast<size_t>(count)]);
  }
  return some;
}

}  // namespace

MemoryEstimate estimate_memory(const models::Model& model, Stepper& stepper, const Split& split,
                               const TaskShape& shape, const TrainConfig& config, uint64_t seed,
                               const std::optional<Masking>& masking) {
  const Estimator estimator{model, stepper, split, shape, config, masking};
  const Examples batch = estimator.most_expensive(seed);
  const auto copies = [longest = estimator.longest_example()](int64_t count) {
    return Examples(static_cast<size_t>(count), longest);
  };
  // First, so that resident memory grows with the tensors of the first probe: preparing data may
  // have left hundreds of megabytes that are free and resident.
  give_back_free_memory();
  const int64_t before = resident_bytes();
  (void)reset_peak_resident_bytes();
  const auto micro_batch = static_cast<int64_t>(batch.size());
  // A whole model may normalize over the batch, which takes two.
  const bool is_whole = dynamic_cast<const models::PythonModel*>(&model) != nullptr;
  const int64_t few = is_whole ? std::min<int64_t>(2, micro_batch) : 1;
  const Probe one = estimator.train(some_of(batch, few));
  // A second example takes at most as much as the first one.
  const int64_t peak = peak_resident_bytes();
  if (peak - before > available_memory_bytes()) {
    return {.peak_bytes = micro_batch > 1 ? 2 * peak - before : peak,
            .extra_bytes = micro_batch > 1 ? peak - before : 0};
  }
  // The peak of a step whose memory is mostly parameters may occur at another point than with many
  // examples. So the line begins at two, and the number of measured examples depends on the bytes
  // that an example adds.
  const Probe eval_one = estimator.infer(copies(1)), two = estimator.train(some_of(batch, few + 1));
  const double room = std::min(kProbeBytes, static_cast<double>(available_memory_bytes()) / 4);
  const int64_t more =
      std::clamp<int64_t>(static_cast<int64_t>(room / std::max(1.0, two.tensors - one.tensors)),
                          few + 1, std::max<int64_t>(few + 1, micro_batch));
  const Probe of_more = more > few + 1 ? estimator.train(some_of(batch, more)) : two,
              eval_more = estimator.infer(copies(more));
  const double tensors = std::max(
      {one.tensors, at_positions(estimator.positions(batch), more > few + 1 ? two : one, of_more),
       at_positions(config.eval_batch_size * eval_one.positions, eval_one, eval_more)});
  // The run's blocks will be elsewhere, and leftovers of the probes would add to them.
  give_back_free_memory();
  MemoryEstimate estimate;
  estimate.peak_bytes = peak + static_cast<int64_t>(tensors - one.tensors);
  estimate.extra_bytes = std::max<int64_t>(0, estimate.peak_bytes - resident_bytes());
  return estimate;
}

void refuse_without_memory(const MemoryEstimate& estimate, int64_t available_bytes) {
  if (estimate.extra_bytes <= available_bytes) return;
  throw Error({.where = "memory",
               .what = "this run takes about " +
                       human_bytes(static_cast<uint64_t>(estimate.peak_bytes)) + ", " +
                       human_bytes(static_cast<uint64_t>(estimate.extra_bytes)) + " more than now",
               .expected = "at most the " + human_bytes(static_cast<uint64_t>(available_bytes)) +
                           " that are available",
               .advice = "set train.accumulate higher, train.batch_size or train.eval_batch_size "
                         "lower, train.recompute=true or train.precision=bf16, or make the model "
                         "smaller; train.memory_check=warn continues anyway"});
}

}  // namespace lra::training
