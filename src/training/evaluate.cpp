#include "training/evaluate.h"

#include <algorithm>

#include "base/stop_flag.h"
#include "tasks/drawn_examples.h"
#include "training/batches.h"

namespace lra::training {
namespace {

std::vector<int64_t> by_length(const tasks::Split& split, int64_t count) {
  std::vector<int64_t> order = tasks::drawn_examples(split.size(), count);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return split.sequence_length(a, 0) < split.sequence_length(b, 0);
  });
  return order;
}

using Confusion = std::vector<std::vector<int64_t>>;  // [label][prediction]

// The sum of the losses of a batch; counts its predictions.
double evaluate_batch(const models::Model& model, const Batch& batch, Confusion& confusion) {
  const at::Tensor logits =
      model.forward(to_device(batch, model.device()).input, {}).cpu();  // read once
  const at::Tensor predicted = logits.argmax(1);
  const auto labels = batch.labels_B.accessor<int64_t, 1>(),
             predictions = predicted.accessor<int64_t, 1>();
  for (int64_t b = 0; b < labels.size(0); ++b) {
    ++confusion[static_cast<size_t>(labels[b])][static_cast<size_t>(predictions[b])];
  }
  return at::cross_entropy_loss(logits, batch.labels_B, {}, at::Reduction::Sum).item<double>();
}

void add_up(Confusion& confusion, Ranks& ranks) {
  if (ranks.count() == 1) return;
  std::vector<double> counts;
  for (const auto& row : confusion) counts.insert(counts.end(), row.begin(), row.end());
  ranks.sum(counts);
  auto count = counts.begin();
  for (auto& row : confusion) {
    for (int64_t& cell : row) cell = static_cast<int64_t>(*count++);
  }
}

}  // namespace

EvaluationResult evaluate(const models::Model& model, const tasks::Split& split,
                          const TaskShape& shape, int64_t batch_size, int64_t limit,
                          const std::function<void(int64_t)>& done, Ranks& ranks, bool trim) {
  const at::NoGradGuard no_grad;
  const int64_t count = limit > 0 ? std::min(limit, split.size()) : split.size();
  const std::vector<int64_t> order = by_length(split, count);
  EvaluationResult result;
  const auto classes = static_cast<size_t>(shape.num_classes);
  result.confusion.assign(classes, std::vector<int64_t>(classes));
  double loss_sum = 0;
  int64_t seen = 0;
  // One batch of every rank at a time: their losses, each in its own place, and the stops.
  std::vector<double> round(static_cast<size_t>(ranks.count()) + 1);
  while (seen < count && !result.stopped) {
    std::fill(round.begin(), round.end(), 0.0);
    const int64_t begin = seen + ranks.rank() * batch_size;
    if (begin < count) {
      const auto size = static_cast<size_t>(std::min(batch_size, count - begin));
      const std::span<const int64_t> indices(order.data() + begin, size);
      round[static_cast<size_t>(ranks.rank())] =
          evaluate_batch(model, make_batch(split, indices, shape, trim), result.confusion);
    }
    const int64_t size = std::min(ranks.count() * batch_size, count - seen);
    if (done) done(size);
    round.back() = stop_requested() ? 1 : 0;
    ranks.sum(round);
    for (size_t i = 0; i + 1 < round.size(); ++i) loss_sum += round[i];
    seen += size;
    result.stopped = round.back() > 0;
  }
  add_up(result.confusion, ranks);
  int64_t correct = 0;
  for (size_t label = 0; label < classes; ++label) correct += result.confusion[label][label];
  const auto total = static_cast<double>(std::max<int64_t>(1, seen));
  result.summary = {.step = 0,
                    .loss = loss_sum / total,
                    .accuracy = static_cast<double>(correct) / total,
                    .num_examples = seen};
  return result;
}

EvaluationResult evaluate_with_bar(const models::Model& model, const tasks::Split& split,
                                   const TaskShape& shape, int64_t batch_size, int64_t limit,
                                   ProgressOptions look, bool trim) {
  look.total = limit > 0 ? std::min(limit, split.size()) : split.size();
  Progress bar(std::move(look));
  auto result = evaluate(
      model, split, shape, batch_size, limit, [&](int64_t count) { bar.update(count); }, one_rank(),
      trim);
  if (!result.stopped) bar.finish();
  return result;
}

}  // namespace lra::training
