// Rotations of ChordMixer (Khalitov et al. 2023, arXiv:2206.05852, section 3).
#pragma once

#include "ops/libtorch.h"

namespace lra::ops {

// The D channels are `tracks` groups of neighbors, of which the first D mod tracks have one channel
// more. Track m moves along the sequence, within the N tokens of its example:
//
//   y[b, p, track m] = x[b, (p + o_m) mod N, track m],   o_0 = 0, o_m = 2^(m - 1).
//
// mask: uint8 [B, L], ones first; padding stays where it is. Differentiable any number of times.
Tensor rotate_tracks(const Tensor& x_BLD, int64_t tracks, const Tensor& mask_BL);

}  // namespace lra::ops
