#include "training/loop/evaluate.h"

#include <algorithm>

#include "base/stop_flag.h"
#include "data/drawn_examples.h"
#include "training/loop/batches.h"

namespace lra::training {
namespace {

std::vector<int64_t> by_length(const Split& split, int64_t count) {
  std::vector<int64_t> order = drawn_examples(split.size(), count);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return split.sequence_length(a, 0) < split.sequence_length(b, 0);
  });
  return order;
}

using Confusion = std::vector<std::vector<int64_t>>;  // [label][prediction]

// Results of some batches.
struct Tally {
  Confusion confusion = {};  // of classes; empty where places are predicted
  int64_t correct = 0, labels = 0;

  void add(const at::Tensor& scores, const at::Tensor& labels_N) {
    labels += labels_N.size(0);
    correct += models::are_right(scores, labels_N).sum().item<int64_t>();
    if (confusion.empty()) return;
    const at::Tensor predicted = scores.argmax(1);
    const auto label = labels_N.accessor<int64_t, 1>(),
               prediction = predicted.accessor<int64_t, 1>();
    for (int64_t i = 0; i < label.size(0); ++i) {
      ++confusion[static_cast<size_t>(label[i])][static_cast<size_t>(prediction[i])];
    }
  }
};

// Stores the predictions of a batch in the places of its examples. In float64, in which the
// probability of the other class of two does not round to 0 as soon.
void keep_predictions(const at::Tensor& scores, std::span<const int64_t> indices,
                      EvaluationResult& result) {
  const at::Tensor probability_NC = at::softmax(scores, 1, at::kDouble);
  const auto [probability_N, label_N] = probability_NC.max(1);
  const auto probability = probability_N.accessor<double, 1>();
  const auto label = label_N.accessor<int64_t, 1>();
  for (int64_t i = 0; i < label.size(0); ++i) {
    const auto example = static_cast<size_t>(indices[static_cast<size_t>(i)]);
    result.predictions[example] = {static_cast<int32_t>(label[i]), probability[i]};
    if (result.probabilities.empty()) continue;
    const auto row = probability_NC[i].to(at::kFloat);
    result.probabilities[example].assign(row.const_data_ptr<float>(),
                                         row.const_data_ptr<float>() + row.numel());
  }
}

// The sum of the losses of a batch; counts its predictions.
double evaluate_batch(const models::Model& model, const Batch& batch,
                      std::span<const int64_t> indices, Tally& tally, EvaluationResult& result) {
  const at::Tensor scores =
      model.forward(to_device(batch, model.device()).input, {}).cpu();  // read once
  tally.add(scores, batch.labels_B);
  if (!result.predictions.empty()) keep_predictions(scores, indices, result);
  return models::loss_of(scores, batch.labels_B, at::Reduction::Sum).item<double>();
}

void add_up(Tally& tally, Ranks& ranks) {
  if (ranks.count() == 1) return;
  std::vector<double> counts = {static_cast<double>(tally.correct),
                                static_cast<double>(tally.labels)};
  for (const auto& row : tally.confusion) counts.insert(counts.end(), row.begin(), row.end());
  ranks.sum(counts);
  auto count = counts.begin();
  tally.correct = static_cast<int64_t>(*count++);
  tally.labels = static_cast<int64_t>(*count++);
  for (auto& row : tally.confusion) {
    for (int64_t& cell : row) cell = static_cast<int64_t>(*count++);
  }
}

}  // namespace

EvaluationResult evaluate(const models::Model& model, const Split& split, const TaskShape& shape,
                          int64_t batch_size, int64_t limit,
                          const std::function<void(int64_t)>& done, Ranks& ranks, bool trim,
                          const std::optional<Masking>& masking, bool all_probabilities) {
  const at::NoGradGuard no_grad;
  const int64_t count = limit > 0 ? std::min(limit, split.size()) : split.size();
  const std::vector<int64_t> order = by_length(split, count);
  EvaluationResult result;
  Tally tally;
  const auto classes = static_cast<size_t>(shape.num_classes);
  if (!masking) tally.confusion.assign(classes, std::vector<int64_t>(classes));
  if (!masking && count == split.size() && ranks.count() == 1) {
    result.predictions.resize(static_cast<size_t>(count));
    if (all_probabilities) result.probabilities.resize(static_cast<size_t>(count));
  }
  double loss_sum = 0;
  int64_t seen = 0;
  // Evaluates one batch of every rank at a time; the sum has each rank's loss in its own place, and
  // the stops.
  std::vector<double> round(static_cast<size_t>(ranks.count()) + 1);
  while (seen < count && !result.stopped) {
    std::fill(round.begin(), round.end(), 0.0);
    const int64_t begin = seen + ranks.rank() * batch_size;
    if (begin < count) {
      const auto size = static_cast<size_t>(std::min(batch_size, count - begin));
      const std::span<const int64_t> indices(order.data() + begin, size);
      Batch batch = make_batch(split, indices, shape, trim);
      if (masking) hide_positions(batch, indices, shape, masking->fixed(), kNoStep);
      round[static_cast<size_t>(ranks.rank())] =
          evaluate_batch(model, batch, indices, tally, result);
    }
    const int64_t size = std::min(ranks.count() * batch_size, count - seen);
    if (done) done(size);
    round.back() = stop_requested() ? 1 : 0;
    ranks.sum(round);
    for (size_t i = 0; i + 1 < round.size(); ++i) loss_sum += round[i];
    seen += size;
    result.stopped = round.back() > 0;
  }
  add_up(tally, ranks);
  result.confusion = std::move(tally.confusion);
  const auto total = static_cast<double>(std::max<int64_t>(1, tally.labels));
  result.summary = {.step = 0,
                    .loss = loss_sum / total,
                    .accuracy = static_cast<double>(tally.correct) / total,
                    .num_examples = seen};
  if (masking) result.summary.num_positions = tally.labels;
  return result;
}

EvaluationResult evaluate_with_bar(const models::Model& model, const Split& split,
                                   const TaskShape& shape, int64_t batch_size, int64_t limit,
                                   ProgressOptions look, bool trim,
                                   const std::optional<Masking>& masking, bool all_probabilities) {
  look.total = limit > 0 ? std::min(limit, split.size()) : split.size();
  Progress bar(std::move(look));
  auto result = evaluate(
      model, split, shape, batch_size, limit, [&](int64_t count) { bar.update(count); }, one_rank(),
      trim, masking, all_probabilities);
  if (!result.stopped) bar.finish();
  return result;
}

}  // namespace lra::training
