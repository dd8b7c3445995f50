// Buffers that follow a layer's inputs in training.
#pragma once

#include <cstdint>
#include <span>

namespace lra::layers {

// A forward pass changes no buffer: it notes its statistics, once for each micro-batch, however
// often that is computed. So nothing counts twice when activations are recomputed, and a step that
// is discarded, or run as a measurement, leaves no trace. A step that counts ends with follow().
class RunningStatistics {
 public:
  virtual ~RunningStatistics() = default;
  // Number of sums that take_sums() writes.
  virtual int64_t num_sums() const = 0;
  // Returns the sums over the micro-batches of the step on this rank, to be added up over the
  // ranks, and clears them.
  virtual void take_sums(std::span<double> sums) = 0;
  // The step counted: buffers follow the sums of all ranks.
  virtual void follow(std::span<const double> sums) = 0;
};

}  // namespace lra::layers
