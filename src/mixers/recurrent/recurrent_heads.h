// Parts that layers with a recurrence in each head share (ops/scan/matrix_scan.h). With two
// directions, the second half of the heads, or of the channels, runs from the end of each example,
// and the layer's output projection joins them: no parameter more than with one direction, and no
// position counts twice.
#pragma once

#include <vector>

#include "mixers/sequence_layer.h"
#include "mixers/state_space.h"

namespace lra::mixers {

// Throws lra::Error unless `count` of what the setting says is even, where there are two
// directions.
void check_halves(const char* setting, int64_t count, bool bidirectional);

// Throws lra::Error unless `count`, that of the setting, divides the channels: "4 blocks do not
// divide 6 channels".
void check_divides(const char* setting, int64_t count, int64_t channels,
                   const char* is_not = "does not divide",
                   const char* expected = "a divisor of mixer.expand times the width of the model");

// The kernel of a depthwise convolution (ops/long_convolution.h) from a weight [E, W], where
// weight[e, j] multiplies the token j positions earlier. With two directions, the second half of
// the channels of each of the `parts`, whose widths add up to E, looks at later tokens instead. The
// places, of the layer, are made in the first call.
struct DirectedKernel {
  at::Tensor kernel_EK;
  int64_t future;
};
struct DirectedPlaces {
  at::Tensor to_EK, from_EW;
};
DirectedKernel directed_kernel(const at::Tensor& weight_EW, const std::vector<int64_t>& parts,
                               bool bidirectional, DirectedPlaces& places);

// -rate softplus(x) [B, L, H, 1], the log decay of steps x [B, L, H] for rates exp(rate_log) [H],
// and the steps softplus(x), both in the accumulator dtype of x.
struct Steps {
  at::Tensor log_decay_BLH1, step_BLH;
};
Steps decaying_steps(const at::Tensor& x_BLH, const at::Tensor& bias_H,
                     const at::Tensor& rate_log_H);

inline constexpr double kHeadNormEps = 1e-5;  // of norms over heads (ops/pointwise/row_norm.h)

// Logarithms of numbers uniform in (least, most], float32 [count].
at::Tensor uniform_rate_logs(const layers::Initializer& init, int64_t count, double least,
                             double most);

// Rows of x [..., W] of this length; of zeros, zeros: length x / sqrt(sum of squares + eps).
at::Tensor rows_of_length(double length, const at::Tensor& x, double eps);

// [G, R, W] -> [G R, G W] with these blocks on the diagonal: one product for all blocks, which are
// narrow, takes less time than one for each.
at::Tensor block_diagonal(const at::Tensor& w_GRW);

// What makes softplus(bias) log-uniform in [dt_min, dt_max], float32 [count].
at::Tensor step_bias(const layers::Initializer& init, int64_t count, double dt_min, double dt_max);

}  // namespace lra::mixers
