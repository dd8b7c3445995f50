// Buffers that follow a layer's inputs in training.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>

namespace lra::layers {

// A forward pass changes no buffer: it notes its statistics, once for each micro-batch, however
// often that is computed. So nothing counts twice when activations are recomputed, and a step that
// is discarded, or run as a measurement, leaves no trace. A step that counts ends with follow().
class RunningStatistics {
 public:
  static constexpr double kMomentum = 0.1;
  virtual ~RunningStatistics() = default;

 protected:
  // Statistics of the valid positions of a micro-batch: their number [], mean and biased variance
  // [D].
  struct Seen {
    at::Tensor count, mean, variance;
  };
  at::Tensor running_mean_, running_var_;  // [D]
  std::map<uint32_t, Seen> seen_;          // by micro-batch

 private:
  friend at::Tensor take_sums(std::span<RunningStatistics* const> layers);
  friend void follow(std::span<RunningStatistics* const> layers, const at::Tensor& sums);
};

// The sums over the micro-batches of the step on this rank, to be added up over the ranks, which
// are cleared: a float64 array on the layers' device, with the numbers of positions of all layers
// first. Undefined without layers. The layers have equally many channels. All layers are computed
// together, since on a GPU each call of an operator costs more than its numbers.
at::Tensor take_sums(std::span<RunningStatistics* const> layers);
// The step counted: buffers follow the sums of all ranks by `kMomentum`.
void follow(std::span<RunningStatistics* const> layers, const at::Tensor& sums);

}  // namespace lra::layers
