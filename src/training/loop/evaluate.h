// Accuracy and loss of a model on a split, dropout off.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/task_shape.h"
#include "data/dataset.h"
#include "io/progress.h"
#include "models/model.h"
#include "records/run_record.h"
#include "training/loop/masking.h"
#include "training/ranks/ranks.h"

namespace lra::training {

struct Prediction {
  int32_t label = 0;       // the class with the highest score
  double probability = 0;  // its softmax
};

struct EvaluationResult {
  Evaluation summary;  // step is left 0
  // [label][prediction]; empty where places are predicted.
  std::vector<std::vector<int64_t>> confusion;
  bool stopped = false;  // a stop was asked for before the end
  // For each example of the split; empty if only some were evaluated, by several processes, or
  // places were predicted.
  std::vector<Prediction> predictions = {};
  // [example][class], if they were asked for and there are predictions.
  std::vector<std::vector<float>> probabilities = {};
};

// Computed where the model is. With `masking` accuracy and loss are those of the places that it
// hides, the same in every run, or that the task labels. Every example once (the same `limit` drawn
// ones in every run when limit > 0), in order of length so that batches carry little padding;
// `trim` is that of make_batch. `done` is told after every batch how many examples were seen; it
// may be empty. Ranks take batches in turn, and their sums are added in the order of the batches:
// all get the bits that one process gets, and all stop when one was asked to.
EvaluationResult evaluate(const models::Model& model, const Split& split, const TaskShape& shape,
                          int64_t batch_size, int64_t limit,
                          const std::function<void(int64_t)>& done, Ranks& ranks = one_rank(),
                          bool trim = true, const std::optional<Masking>& masking = {},
                          bool all_probabilities = false);

// The same with a progress bar of examples, whose total is filled in.
EvaluationResult evaluate_with_bar(const models::Model& model, const Split& split,
                                   const TaskShape& shape, int64_t batch_size, int64_t limit,
                                   ProgressOptions look, bool trim,
                                   const std::optional<Masking>& masking = {},
                                   bool all_probabilities = false);

}  // namespace lra::training
