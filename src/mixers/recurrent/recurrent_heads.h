// Parts that layers with a recurrence in each head share (ops/scan/matrix_scan.h). With two
// directions, the second half of the heads, or of the channels, runs from the end of each example,
// and the layer's output projection joins them: no parameter more than with one direction, and no
// position counts twice.
#pragma once

#include <vector>

#include "mixers/sequence_layer.h"

namespace lra::mixers {

// Throws lra::Error unless `count` of what the setting says is even, where there are two
// directions.
void check_halves(const char* setting, int64_t count, bool bidirectional);

// A depthwise convolution: x [B, L, E] -> [B, L, E], weight [E, W], where weight[e, j] multiplies
// the token j positions earlier, bias [E] or undefined. With two directions, the second half of the
// channels of each of the `parts`, whose widths add up to E, looks at later tokens instead.
at::Tensor short_convolution(const at::Tensor& x_BLE, const at::Tensor& mask_BL,
                             const at::Tensor& weight_EW, const at::Tensor& bias_E,
                             const std::vector<int64_t>& parts, bool bidirectional);

// -rate softplus(x) [B, L, H, 1], the log decay of steps x [B, L, H] for rates exp(rate_log) [H],
// and the steps softplus(x): both computed in float64, in the accumulator dtype of x.
struct Steps {
  at::Tensor log_decay_BLH1, step_BLH;
};
Steps decaying_steps(const at::Tensor& x_BLH, const at::Tensor& bias_H,
                     const at::Tensor& rate_log_H);

// log(1 + exp(x)) in float64, of calls that do not depend on the number of threads.
at::Tensor softplus_of(const at::Tensor& x);
// sigmoid(x) by our own kernel, in float64 by exp: the library's depends on the number of threads.
at::Tensor sigmoid_of(const at::Tensor& x);

// x / sqrt(mean of squares + 1e-5) * weight over the last axis.
at::Tensor norm_of_rows(const at::Tensor& x, const at::Tensor& weight);

// Logarithms of numbers uniform in (least, most], float32 [count].
at::Tensor uniform_rate_logs(const layers::Initializer& init, int64_t count, double least,
                             double most);

// [G, R, W] -> [G R, G W] with these blocks on the diagonal: one product for all blocks, which are
// narrow, takes less time than one for each.
at::Tensor block_diagonal(const at::Tensor& w_GRW);

// What makes softplus(bias) log-uniform in [dt_min, dt_max], float32 [count].
at::Tensor step_bias(const layers::Initializer& init, int64_t count, double dt_min, double dt_max);

}  // namespace lra::mixers
