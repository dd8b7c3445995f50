// Accuracy and loss of a model on a split, dropout off.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/run_record.h"
#include "base/task_shape.h"
#include "models/classifier.h"
#include "tasks/dataset.h"

namespace lra::training {

struct EvaluationResult {
  Evaluation summary;                           // step is left 0
  std::vector<std::vector<int64_t>> confusion;  // [label][prediction]
  bool stopped = false;                         // a stop was asked for before the end
};

// Every example once (the same `limit` drawn ones in every run when limit > 0), in order of length
// so that batches carry little padding. `done` is told how many examples each batch had; it may be
// empty.
EvaluationResult evaluate(const models::SequenceClassifier& model, const tasks::Split& split,
                          const TaskShape& shape, int64_t batch_size, int64_t limit,
                          const std::function<void(int64_t)>& done);

}  // namespace lra::training
