// Predictions at places of a sequence. Masked pretraining hides positions of a batch and makes the
// tokens there its labels (Amos, Berant and Gupta, Never Train from Scratch, ICLR 2024, section 3;
// docs/pretraining.md); a task that labels places states them (docs/diagnostics.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/task_shape.h"
#include "tasks/task.h"

namespace lra::training {

struct Batch;

struct Masking {
  double fraction = 0;     // probability of each valid position to be hidden
  bool as_values = false;  // predicts stored values instead of classes (train.masked_loss)
  uint64_t seed = 0;
  // The task that labels places, of which none is hidden; null for masked pretraining.
  std::shared_ptr<const tasks::Task> labeled = nullptr;

  // The masks of evaluations: the same in every run.
  Masking fixed() const {
    return {.fraction = fraction, .as_values = as_values, .seed = 0, .labeled = labeled};
  }
};

// The step of an evaluation.
inline constexpr int64_t kNoStep = -1;

// Labels the M places input.places_M, in labels_B, for a task that labels places. Else it hides
// positions of `batch`, which make_batch made of `examples`: each valid one with the
// probability, at least one in each sequence. labels_B become the M tokens, or stored values, at
// input.places_M, where the input becomes 0. The positions depend only on (seed, step, example,
// tower).
void hide_positions(Batch& batch, std::span<const int64_t> examples, const TaskShape& shape,
                    const Masking& masking, int64_t step);

}  // namespace lra::training
