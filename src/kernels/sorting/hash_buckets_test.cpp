#include "kernels/sorting/hash_buckets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
std::vector<T> normals(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<T> x(count);
  for (T& value : x) value = static_cast<float>(random.normal());
  return x;
}

// x in the layout [B, L, H, E].
template <typename T>
std::vector<int32_t> buckets_of(const HashShape& s, const std::vector<T>& x,
                                const std::vector<T>& rotations, const uint8_t* mask) {
  std::vector<int32_t> buckets(s.rounds * s.batch * s.heads * s.length, -1);
  const HeadView<const T> view{x.data(), s.length * s.heads * s.head_dim, s.head_dim,
                               s.heads * s.head_dim};
  hash_buckets(s, view, rotations.data(), mask, buckets.data());
  return buckets;
}

// Value of `bucket`: the rotated coordinate, or its negative in the second half.
template <typename T>
double value_of(const HashShape& s, const std::vector<T>& x, const std::vector<T>& rotations,
                int64_t index, int64_t row, int64_t bucket) {
  const int64_t round = index / (s.batch * s.heads), b = index / s.heads % s.batch;
  const int64_t h = index % s.heads;
  double sum = 0;
  for (int64_t e = 0; e < s.head_dim; ++e) {
    sum += static_cast<double>(x[((b * s.length + row) * s.heads + h) * s.head_dim + e]) *
           rotations[((h * s.rounds + round) * s.head_dim + e) * s.half + bucket % s.half];
  }
  return bucket < s.half ? sum : -sum;
}

template <typename T>
void expect_largest(const HashShape& s, double tolerance) {
  const auto x = normals<T>(s.batch * s.length * s.heads * s.head_dim, 1);
  const auto rotations = normals<T>(s.heads * s.rounds * s.head_dim * s.half, 2);
  const auto buckets = buckets_of(s, x, rotations, nullptr);
  for (int64_t index = 0; index < s.rounds * s.batch * s.heads; ++index) {
    for (int64_t row = 0; row < s.length; ++row) {
      const int32_t bucket = buckets[index * s.length + row];
      ASSERT_GE(bucket, 0);
      ASSERT_LT(bucket, 2 * s.half);
      const double own = value_of(s, x, rotations, index, row, bucket);
      for (int64_t other = 0; other < 2 * s.half; ++other) {
        EXPECT_LE(value_of(s, x, rotations, index, row, other), own + tolerance);
      }
    }
  }
}

TEST(HashBuckets, AreWhereTheSignedRotatedCoordinateIsLargest) {
  for (const int64_t half : {1, 2, 15, 16, 17, 40}) {
    const HashShape shape{
        .batch = 2, .heads = 3, .length = 53, .head_dim = 5, .rounds = 2, .half = half};
    expect_largest<double>(shape, 1e-12);
    expect_largest<float>(shape, 1e-5);
  }
}

TEST(HashBuckets, GivePaddingABucketOfItsOwn) {
  const HashShape shape{.batch = 2, .heads = 1, .length = 3, .head_dim = 2, .rounds = 1, .half = 4};
  const auto x = normals<float>(12, 3), rotations = normals<float>(8, 4);
  const std::vector<uint8_t> mask = {1, 0, 1, 0, 0, 1};
  const auto with = buckets_of(shape, x, rotations, mask.data());
  const auto without = buckets_of(shape, x, rotations, nullptr);
  for (size_t n = 0; n < 6; ++n) EXPECT_EQ(with[n], mask[n] ? without[n] : 8) << n;
}

class IndexOfLargest : public ImplementationTest {
 protected:
  static int64_t find(const std::vector<float>& values) {
    const auto count = static_cast<int64_t>(values.size());
    LRA_RETURN_CALL(GetParam(), index_of_largest(values.data(), count));
  }
};

TEST_P(IndexOfLargest, IsTheFirstOfEqualValues) {
  EXPECT_EQ(find({1, -3, 2, 3, -3}), 1);
  EXPECT_EQ(find(std::vector<float>(40, 0.0f)), 0);
}

TEST_P(IndexOfLargest, IsThatOfTheReference) {
  for (int64_t count = 1; count < 70; ++count) {
    const auto values = normals<float>(count, static_cast<uint64_t>(count));
    EXPECT_EQ(find(values), ref::index_of_largest(values.data(), count));
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(IndexOfLargest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
