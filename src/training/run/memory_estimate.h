// Estimates the main memory of a run on the CPU from parts of its most expensive batch.
#pragma once

#include <cstdint>
#include <optional>

#include "data/dataset.h"
#include "models/model.h"
#include "records/run_record.h"
#include "training/loop/masking.h"
#include "training/loop/stepper.h"

namespace lra::training {

struct MemoryEstimate {
  int64_t peak_bytes = 0;   // resident, of the whole process at the largest step or evaluation
  int64_t extra_bytes = 0;  // of these, what is not resident yet
};

// Estimates the memory of a run from the one of its micro-batches (first 10,000 steps, in the order
// of `seed`) for which the model computes most positions: lengths are known without reading an
// example. Computes gradients on its longest example, on two and on a few of its examples (as many
// as add 1 GB), of all lengths, and extrapolates the bytes of tensors linearly to its positions:
// large tensors are stored without holes between them (tensor_memory.h), so resident memory grows
// by as much. A batch of the evaluation counts as copies of the longest example. If two examples
// already would not fit, the estimate is that of a batch of two. Changes nothing but the gradients
// and the peak that peak_resident_bytes() returns, which counts from here.
MemoryEstimate estimate_memory(const models::Model& model, Stepper& stepper, const Split& split,
                               const TaskShape& shape, const TrainConfig& config, uint64_t seed,
                               const std::optional<Masking>& masking = {});

// Throws lra::Error with advice when `extra_bytes` of the `peak_bytes` are more than `available`.
void refuse_without_memory(const MemoryEstimate& estimate, int64_t available_bytes);

}  // namespace lra::training
