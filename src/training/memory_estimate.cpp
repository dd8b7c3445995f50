#include "training/memory_estimate.h"

#include <algorithm>
#include <functional>

#include "base/resources.h"
#include "base/text_format.h"
#include "training/tensor_arena.h"
#include "training/tensor_memory.h"

namespace lra::training {
namespace {

// Small models are measured at the batch of the run, or near it.
constexpr double kProbeBytes = 1 << 30;

// The example that makes the longest batches.
int64_t longest_example(const tasks::Split& split, int64_t num_towers) {
  int64_t longest = 0, length = -1;
  for (int64_t example = 0; example < split.size(); ++example) {
    for (int64_t tower = 0; tower < num_towers; ++tower) {
      if (split.sequence_length(example, tower) <= length) continue;
      longest = example;
      length = split.sequence_length(example, tower);
    }
  }
  return longest;
}

// One token short where there is padding, so that the mask which real batches have is there.
Batch probe_batch(const tasks::Split& split, int64_t example, int64_t count, const TaskShape& shape,
                  bool trim) {
  Batch batch =
      make_batch(split, std::vector<int64_t>(static_cast<size_t>(count), example), shape, trim);
  if (shape.has_padding) batch.input.lengths_B.sub_(1).clamp_min_(1);
  return batch;
}

// The most bytes of tensors that a batch of `count` examples took.
struct Probe {
  int64_t count;
  double tensors;
};

Probe probe(int64_t count, const std::function<void()>& work) {
  const TensorMemory memory;
  work();
  return {count, static_cast<double>(memory.peak_bytes())};
}

// The line through two probes.
double at_batch(int64_t batch, const Probe& few, const Probe& more) {
  return few.tensors + (more.tensors - few.tensors) * static_cast<double>(batch - few.count) /
                           static_cast<double>(more.count - few.count);
}

}  // namespace

MemoryEstimate estimate_memory(const models::Model& model, Stepper& stepper,
                               const tasks::Split& split, const TaskShape& shape,
                               const TrainConfig& config) {
  const int64_t example = longest_example(split, shape.num_towers);
  const auto batch_of = [&](int64_t count) {
    return probe_batch(split, example, count, shape, config.trim_padding);
  };
  const auto train = [&](int64_t count) {
    return probe(count, [&] {
      const Batch batch = batch_of(count);
      (void)stepper.gradients(std::span(&batch, 1), 0);
    });
  };
  const auto infer = [&](int64_t count) {
    return probe(count, [&] {
      const at::NoGradGuard no_grad;
      (void)model.forward(batch_of(count).input, {});
    });
  };
  // First, so that resident memory grows with the tensors of the first probe: preparing data may
  // have left hundreds of megabytes that are free and resident.
  give_back_free_memory();
  const int64_t before = resident_bytes();
  (void)reset_peak_resident_bytes();
  const int64_t micro_batch = (config.batch_size + config.accumulate - 1) / config.accumulate;
  const Probe one = train(1);
  // A second example takes at most what the first one took.
  const int64_t peak = peak_resident_bytes();
  if (peak - before > available_memory_bytes()) {
    return {.peak_bytes = micro_batch > 1 ? 2 * peak - before : peak,
            .extra_bytes = micro_batch > 1 ? peak - before : 0};
  }
  // Where parameters are most of a step, its peak may lie elsewhere than with many examples: so the
  // line begins at two, and what examples add decides how many are measured.
  const Probe eval_one = infer(1), two = train(2);
  const double room = std::min(kProbeBytes, static_cast<double>(available_memory_bytes()) / 4);
  const int64_t more =
      std::clamp<int64_t>(static_cast<int64_t>(room / std::max(1.0, two.tensors - one.tensors)), 2,
                          std::max<int64_t>(2, micro_batch));
  const Probe of_more = more > 2 ? train(more) : two, eval_more = infer(more);
  const double tensors =
      std::max({one.tensors, at_batch(micro_batch, more > 2 ? two : one, of_more),
                at_batch(config.eval_batch_size, eval_one, eval_more)});
  // The run's blocks will lie elsewhere, and what the probes leave would add up with them.
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
