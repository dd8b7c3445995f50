// Angular locality-sensitive hashing (Andoni et al. 2015; Kitaev et al. 2020, section 2): the
// bucket of x is argmax([x R, -x R]) for a random R [E, buckets / 2].
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/choice.h"

namespace lra::kernels {

struct HashShape {
  int64_t batch = 0, heads = 0, length = 0;
  int64_t head_dim = 0;
  int64_t rounds = 0;
  int64_t half = 0;  // buckets / 2, the columns of a rotation
};

// buckets [rounds, B, H, L] of x, with rotations [H, rounds, E, half]; overwritten. Rows with mask
// [B, L] 0 (null: none) get bucket 2 * half. Equal values: the first. Memory besides: of one
// rotation, and of a few rows of x and x R, per thread. T is float, Bf16 (computed in float) or
// double. In float the bucket is one whose value is within rounding of the largest.
template <typename T>
void hash_buckets(const HashShape& shape, const HeadView<const T>& x, const Wide<T>* rotations,
                  const uint8_t* mask, int32_t* buckets);

// Index of the largest |value|, the first of equal ones.
LRA_DECLARE_SIMD(int64_t index_of_largest(const float* values, int64_t count);)
namespace ref {
template <typename T>
int64_t index_of_largest(const T* values, int64_t count);
}  // namespace ref

}  // namespace lra::kernels
