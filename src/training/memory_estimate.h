// How much main memory a run on the CPU will take, from small batches of its longest example.
#pragma once

#include <cstdint>

#include "models/model.h"
#include "records/run_record.h"
#include "tasks/dataset.h"
#include "training/stepper.h"

namespace lra::training {

struct MemoryEstimate {
  int64_t peak_bytes = 0;   // resident, of the whole process at the largest step or evaluation
  int64_t extra_bytes = 0;  // of these, what is not resident yet
};

// Computes gradients on one, two and a few copies of the longest example of `split` (as many as add
// 1 GB), and extends the bytes of tensors linearly to the batches of `config`: large ones lie
// without holes between them (tensor_arena.h), so resident memory grows by as much. Where already
// two would not fit, the estimate is that of a batch of two. Changes nothing but the gradients, and
// the peak that peak_resident_bytes() tells: it counts from here.
MemoryEstimate estimate_memory(const models::Model& model, Stepper& stepper,
                               const tasks::Split& split, const TaskShape& shape,
                               const TrainConfig& config);

// Throws lra::Error with advice when `extra_bytes` of the `peak_bytes` are more than `available`.
void refuse_without_memory(const MemoryEstimate& estimate, int64_t available_bytes);

}  // namespace lra::training
