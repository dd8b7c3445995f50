#include "training/evaluate.h"

#include <algorithm>

#include "base/permutation.h"
#include "base/rng.h"
#include "base/stop_flag.h"
#include "training/batches.h"

namespace lra::training {
namespace {

// All examples, or `count` drawn by a keyed permutation that is the same in every run: files are
// often sorted by label, so the first ones would not do.
std::vector<int64_t> by_length(const tasks::Split& split, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  const Permutation drawn(static_cast<uint64_t>(split.size()), derive_key(0, RandomUse::kAnalysis));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(drawn(i));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return split.sequence_length(a, 0) < split.sequence_length(b, 0);
  });
  return order;
}

}  // namespace

EvaluationResult evaluate(const models::SequenceClassifier& model, const tasks::Split& split,
                          const TaskShape& shape, int64_t batch_size, int64_t limit,
                          const std::function<void(int64_t)>& done) {
  const torch::NoGradGuard no_grad;
  const int64_t count = limit > 0 ? std::min(limit, split.size()) : split.size();
  const std::vector<int64_t> order = by_length(split, count);
  EvaluationResult result;
  const auto classes = static_cast<size_t>(shape.num_classes);
  result.confusion.assign(classes, std::vector<int64_t>(classes));
  double loss_sum = 0;
  int64_t correct = 0, seen = 0;
  for (int64_t begin = 0; begin < count && !result.stopped; begin += batch_size) {
    const int64_t size = std::min(batch_size, count - begin);
    const Batch batch = make_batch(
        split, std::span(order).subspan(static_cast<size_t>(begin), static_cast<size_t>(size)),
        shape, true);
    const at::Tensor logits = model.forward(batch.input, {});
    loss_sum +=
        at::cross_entropy_loss(logits, batch.labels_B, {}, at::Reduction::Sum).item<double>();
    const at::Tensor predicted = logits.argmax(1);
    const auto labels = batch.labels_B.accessor<int64_t, 1>(),
               predictions = predicted.accessor<int64_t, 1>();
    for (int64_t b = 0; b < size; ++b) {
      ++result.confusion[static_cast<size_t>(labels[b])][static_cast<size_t>(predictions[b])];
      correct += labels[b] == predictions[b];
    }
    seen += size;
    if (done) done(size);
    result.stopped = stop_requested();
  }
  const auto total = static_cast<double>(std::max<int64_t>(1, seen));
  result.summary = {.step = 0,
                    .loss = loss_sum / total,
                    .accuracy = static_cast<double>(correct) / total,
                    .num_examples = seen};
  return result;
}

}  // namespace lra::training
