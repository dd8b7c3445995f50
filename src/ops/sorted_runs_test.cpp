#include "ops/sorted_runs.h"

#include "ops/attention/attention.h"
#include "ops/attention/dense_attention.h"
#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr int64_t kRunsBatch = 3, kRunsHeads = 2, kBuckets = 4;

Tensor random_buckets(int64_t rounds, int64_t length) {
  return at::floor((random_tensor({rounds, kRunsBatch, kRunsHeads, length}, 3) + 1) *
                   (kBuckets / 2))
      .to(at::kInt);
}

// bool [B, H, L, L]: pairs of different rows in one bucket, in some round.
Tensor same_bucket(const Tensor& buckets) {
  const Tensor equal = buckets.unsqueeze(-1).eq(buckets.unsqueeze(-2));
  return equal.any(0) & ~at::eye(buckets.size(-1), at::kBool);
}

std::vector<Tensor> inputs(int64_t length) {
  std::vector<Tensor> qkv;
  for (const uint64_t seed : {1, 2, 3}) {
    qkv.push_back(random_tensor({kRunsBatch, length, kRunsHeads, 6}, seed));
  }
  return qkv;
}

TEST(SortedRunsAttention, IsAttentionToTheUnionOfTheRounds) {
  for (const int64_t length : {1, 2, 19, 150}) {
    for (const int64_t rounds : {1, 3}) {
      const Tensor buckets = random_buckets(rounds, length), allowed = same_bucket(buckets);
      const TensorFunction ours = [&](const std::vector<Tensor>& in) {
        std::vector<AttentionPart> parts;
        for (const Tensor& runs : sorted_runs(buckets, kBuckets, {})) {
          AttentionPattern pattern;
          pattern.runs = runs;
          parts.push_back({in[1], in[2], pattern});
        }
        return joint_attention(in[0], parts);
      };
      const TensorFunction dense = [&](const std::vector<Tensor>& in) {
        return dense_attention(in[0], in[1], in[2], allowed);
      };
      expect_agrees(ours, at::kFloat, dense, inputs(length));
      expect_agrees(ours, at::kDouble, dense, inputs(length), {.value = 1e-7, .gradient = 1e-7});
    }
  }
}

TEST(SortedRunsAttention, GradientIsTheSlope) {
  const Tensor buckets = random_buckets(2, 11);
  expect_gradient_is_slope(
      [&](const std::vector<Tensor>& in) {
        std::vector<AttentionPart> parts;
        for (const Tensor& runs : sorted_runs(buckets, kBuckets, {.chunk = 4, .causal = true})) {
          AttentionPattern pattern;
          pattern.runs = runs;
          parts.push_back({in[1], in[2], pattern, {}, {0.2, 5 + parts.size()}});
        }
        return joint_attention(in[0], parts);
      },
      inputs(11));
}

TEST(HashBuckets, AreTheSignedRotatedCoordinateThatIsLargest) {
  const Tensor x = random_tensor({kRunsBatch, 33, kRunsHeads, 6}, 1, at::kFloat);
  const Tensor rotations = random_tensor({kRunsHeads, 2, 6, 5}, 2, at::kFloat);
  const Tensor rotated = at::einsum("blhe,hren->rbhln", {x, rotations});
  Tensor expected = at::cat({rotated, -rotated}, -1).argmax(-1);
  EXPECT_TRUE(at::equal(hash_buckets(x, rotations, {}).to(at::kLong), expected));
  Tensor mask = at::ones({kRunsBatch, 33}, at::kByte);
  mask[1].narrow(0, 20, 13).fill_(0);
  expected = expected.masked_fill(mask.eq(0).unsqueeze(1), 10);
  EXPECT_TRUE(at::equal(hash_buckets(x, rotations, mask).to(at::kLong), expected));
}

TEST(HashBuckets, ReadStridedRows) {
  const Tensor x = random_tensor({kRunsBatch, 7, 3, kRunsHeads, 6}, 1, at::kFloat).select(2, 1);
  const Tensor rotations = random_tensor({kRunsHeads, 1, 6, 3}, 2, at::kFloat);
  EXPECT_TRUE(
      at::equal(hash_buckets(x, rotations, {}), hash_buckets(x.contiguous(), rotations, {})));
}

}  // namespace
}  // namespace lra::ops
