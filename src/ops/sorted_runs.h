// Rows sorted by bucket, for attention inside buckets: kernels/sorting/sorted_runs.h and
// kernels/sorting/hash_buckets.h on tensors. Nothing here has a gradient.
#pragma once

#include <vector>

#include "kernels/sorting/sorted_runs.h"
#include "ops/libtorch.h"

namespace lra::ops {

using kernels::RunRules;

// Rotations for heads like those of x [B, L, H, E], float32 [H, rounds, E, columns] on its device:
// normal numbers of head h and round r row by row from RandomStream(derive_key(key, kMixer, h, r)).
// A GPU's may differ from the CPU's in the last bit.
Tensor draw_rotations(const Tensor& x_BLHE, int64_t rounds, int64_t columns, uint64_t key);

// Angular hashing: bucket argmax([x R, -x R]) of each row in each round. x [B, L, H, E], rotations
// R [H, rounds, E, N / 2] of the same type (float32 for bfloat16), mask uint8 [B, L] or undefined
// -> int32 [rounds, B, H, L]. Rows with mask 0 get bucket N.
Tensor hash_buckets(const Tensor& x_BLHE, const Tensor& rotations, const Tensor& mask_BL);

// AttentionPattern::runs of each round, int32 [B * H, 3 + 3 round, L]: a row sees the rows of its
// bucket, under the rules, that it has not seen in an earlier round. buckets int32 [rounds, B, H,
// L]; rows of bucket `num_buckets` are padding.
std::vector<Tensor> sorted_runs(const Tensor& buckets, int64_t num_buckets, const RunRules& rules);

}  // namespace lra::ops
