#include "ops/attention/attention.h"

#include "base/parallel.h"
#include "ops/attention/dense_attention.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr int64_t kBatch = 3, kHeads = 2;

AttentionPattern window(int64_t left, int64_t right) {
  AttentionPattern pattern;
  pattern.left = left;
  pattern.right = right;
  return pattern;
}

struct Problem {
  int64_t queries = 1, keys = 1, head_dim = 8;
  AttentionPattern pattern = {};
  AttentionMask mask = {};
  AttentionDropout dropout = {};
  double scale = 0;
  bool bias = false, relative = false;  // the bias: a number for each distance
  int64_t value_dim = 0;                // 0: head_dim
  AttentionWeights weights = AttentionWeights::kSoftmax;
};

// The bias of a problem is a part of a longer one, as where a batch was cut to its longest.
Tensor bias_of(const Problem& p, const std::vector<Tensor>& in) {
  if (!p.bias) return {};
  if (p.relative) return in[3].narrow(1, 2, p.queries + p.keys - 1);
  return in[3].narrow(1, 0, p.queries).narrow(2, 0, p.keys);
}

TensorFunction ours(const Problem& p) {
  return [p](const std::vector<Tensor>& in) {
    // A table of an even number of queries is larger than it must be.
    const bool is_whole = p.bias && !p.relative && p.queries % 2 == 0;
    const Tensor bias = is_whole ? in[3] : bias_of(p, in);
    return attention(in[0], in[1], in[2], p.pattern, p.mask, p.dropout, p.scale, bias, p.weights);
  };
}

TensorFunction packed(const Problem& p) {
  return [p](const std::vector<Tensor>& in) {
    return packed_attention(in[0], p.pattern, p.mask, p.dropout, p.scale);
  };
}

TensorFunction oracle(const Problem& p) {
  const Tensor allowed = masks_allow(pattern_allows(p.pattern, kHeads, p.queries, p.keys), p.mask);
  return [p, allowed](const std::vector<Tensor>& in) {
    const Tensor bias = table_of_bias(bias_of(p, in), p.queries, p.keys);
    return dense_attention(in[0], in[1], in[2], allowed, p.dropout, p.scale, bias, p.weights);
  };
}

std::vector<Tensor> inputs(const Problem& p) {
  std::vector<Tensor> all = {
      random_tensor({kBatch, p.queries, kHeads, p.head_dim}, 1),
      random_tensor({kBatch, p.keys, kHeads, p.head_dim}, 2),
      random_tensor({kBatch, p.keys, kHeads, p.value_dim == 0 ? p.head_dim : p.value_dim}, 3)};
  if (p.relative) {
    all.push_back(random_tensor({kHeads, p.queries + p.keys + 4}, 4));
  } else if (p.bias) {
    all.push_back(random_tensor({kHeads, p.queries + 2, p.keys + 5}, 4));
  }
  return all;
}

// Valid lengths n, about n / 2 and 0.
Tensor ragged_mask(int64_t length) {
  Tensor mask = at::zeros({kBatch, length}, at::kByte);
  mask[0].fill_(1);
  mask[1].narrow(0, 0, (length + 1) / 2).fill_(1);
  return mask;
}

// About half of all key blocks in every row; row 0 sees nothing.
AttentionPattern random_blocks(int64_t queries, int64_t keys, int64_t query_block,
                               int64_t key_block, int64_t num_lists) {
  const int64_t rows = num_lists * ((queries + query_block - 1) / query_block);
  const auto key_blocks = static_cast<int32_t>((keys + key_block - 1) / key_block);
  RandomStream stream(5);
  std::vector<int64_t> offsets = {0, 0};
  std::vector<int32_t> lists;
  for (int64_t row = 1; row < rows; ++row) {
    for (int32_t block = 0; block < key_blocks; ++block) {
      if (stream.below(2) == 0) lists.push_back(block);
    }
    offsets.push_back(static_cast<int64_t>(lists.size()));
  }
  return {.offsets = at::tensor(offsets, at::kLong),
          .key_blocks = at::tensor(lists, at::kInt),
          .query_block = query_block,
          .key_block = key_block};
}

void expect_oracle(const Problem& p) {
  SCOPED_TRACE(testing::Message() << "L " << p.queries << " S " << p.keys << " E " << p.head_dim);
  expect_agrees(ours(p), at::kFloat, oracle(p), inputs(p));
  expect_agrees(ours(p), at::kDouble, oracle(p), inputs(p), {.value = 1e-6, .gradient = 1e-6});
}

TEST(Attention, AgreesWithTheDenseDefinition) {
  for (const auto& [queries, keys] :
       {std::pair{1, 1}, {2, 3}, {17, 17}, {64, 64}, {1, 65}, {131, 77}}) {
    for (const int64_t head_dim : {1, 7, 8, 32}) {
      expect_oracle({.queries = queries, .keys = keys, .head_dim = head_dim});
    }
  }
}

TEST(Attention, AgreesWithTheDenseDefinitionInBf16) {
  for (const auto& [queries, keys] : {std::pair{1, 1}, {17, 17}, {131, 77}}) {
    for (const int64_t head_dim : {1, 7, 32}) {
      Problem p{.queries = queries, .keys = keys, .head_dim = head_dim};
      p.mask = {ragged_mask(keys), ragged_mask(queries)};
      p.dropout = {0.25, 9};
      SCOPED_TRACE(testing::Message() << "L " << queries << " S " << keys << " E " << head_dim);
      expect_agrees_in_bf16(ours(p), oracle(p), inputs(p), 3);
    }
  }
}

TEST(Attention, GivesAFloat32LogsumexpInBf16) {
  const Problem p{.queries = 33, .keys = 20};
  const std::vector<Tensor> in = inputs(p);
  const auto rounded = [&](size_t i) { return in[i].to(at::kBFloat16); };
  const PartialAttention part = partial_attention(rounded(0), rounded(1), rounded(2));
  const auto exact = [&](size_t i) { return rounded(i).to(at::kDouble); };
  const Tensor expected = partial_attention(exact(0), exact(1), exact(2)).logsumexp_BHL;
  EXPECT_EQ(part.logsumexp_BHL.scalar_type(), at::kFloat);
  EXPECT_LE(relative_error(part.logsumexp_BHL, expected), 1e-5);
}

TEST(Attention, HonoursPaddedKeysAndQueries) {
  for (const int64_t length : {1, 2, 17, 64, 131}) {
    const Tensor mask = ragged_mask(length);
    expect_oracle({.queries = length, .keys = length, .mask = {mask, mask}});
    expect_oracle({.queries = length, .keys = length, .mask = {mask, {}}});
    expect_oracle({.queries = length, .keys = length, .mask = {{}, mask}});
  }
}

TEST(Attention, HonoursWindowsAndCausality) {
  for (const auto& [left, right] : {std::pair{-1, 0}, {0, 0}, {3, 5}, {-1, 2}, {70, -1}}) {
    for (const int64_t length : {1, 33, 130}) {
      expect_oracle({.queries = length, .keys = length, .pattern = window(left, right)});
    }
  }
}

TEST(Attention, HonoursBlockLists) {
  for (const auto& [query_block, key_block] : {std::pair{1, 1}, {8, 8}, {7, 16}, {50, 3}}) {
    for (const int64_t num_lists : {int64_t{1}, kHeads, kBatch * kHeads}) {
      expect_oracle({.queries = 61,
                     .keys = 75,
                     .pattern = random_blocks(61, 75, query_block, key_block, num_lists)});
    }
  }
}

TEST(Attention, CombinesBlockListsWindowAndMasks) {
  AttentionPattern pattern = random_blocks(61, 61, 8, 8, kBatch * kHeads);
  pattern.left = 20;
  pattern.right = 4;
  expect_oracle({.queries = 61,
                 .keys = 61,
                 .pattern = pattern,
                 .mask = {ragged_mask(61), ragged_mask(61)},
                 .dropout = {0.2, 9}});
}

TEST(Attention, DropsWeightsByTheCounter) {
  for (const int64_t length : {1, 17, 150}) {
    expect_oracle({.queries = length, .keys = length, .dropout = {0.1, 42}});
    expect_oracle({.queries = length, .keys = length, .dropout = {0.5, uint64_t{1} << 63 | 7}});
  }
}

TEST(Attention, AddsABias) {
  expect_oracle({.queries = 9, .keys = 11, .bias = true});
  const int64_t length = 270;
  const Tensor mask = ragged_mask(length);
  const Problem p{.queries = length,
                  .keys = length,
                  .pattern = window(-1, 0),
                  .mask = {mask, mask},
                  .dropout = {0.2, 7},
                  .scale = 0.5,
                  .bias = true};
  expect_oracle(p);
  expect_agrees_in_bf16(ours(p), oracle(p), inputs(p), 3);
}

TEST(Attention, AddsABiasForEachDistance) {
  for (const auto weights : {AttentionWeights::kSoftmax, AttentionWeights::kLaplace}) {
    for (const auto& [queries, keys] : {std::pair{1, 1}, {9, 11}, {270, 130}}) {
      const Tensor of_keys = ragged_mask(keys), of_queries = ragged_mask(queries);
      Problem p{.queries = queries, .keys = keys, .bias = true, .relative = true, .value_dim = 13};
      p.weights = weights;
      expect_oracle(p);
      p.mask = {of_keys, of_queries};
      p.dropout = {0.2, 7};
      p.pattern = window(-1, 7);
      p.scale = 0.5;
      expect_oracle(p);
      expect_agrees_in_bf16(ours(p), oracle(p), inputs(p), 3);
    }
  }
}

TEST(Attention, WeighsByTheLaplaceFunction) {
  Problem p{.queries = 9, .keys = 40, .value_dim = 3, .weights = AttentionWeights::kLaplace};
  expect_oracle(p);
  expect_gradient_is_slope(ours(p), inputs(p));
  // By its definition: the distribution of a score with mean sqrt(1/2) and variance 1 / (4 pi).
  const Tensor one = at::ones({1, 1, 1, 1});
  const auto weight_of = [&](double score) {
    return attention(one * score, one, one, {}, {}, {}, 1, {}, p.weights).item<double>();
  };
  EXPECT_NEAR(weight_of(std::sqrt(0.5)), 0.5, 1e-6);
  EXPECT_NEAR(weight_of(std::sqrt(0.5) + std::sqrt(0.25 / 3.14159265358979)), 0.8413447, 1e-6);
  EXPECT_NEAR(weight_of(-40), 0, 1e-30);
  EXPECT_NEAR(weight_of(40), 1, 1e-6);
}

TEST(Attention, TakesItsScale) { expect_oracle({.queries = 9, .keys = 11, .scale = 1.75}); }

TEST(Attention, GradientIsTheSlope) {
  const Tensor mask = ragged_mask(13);
  expect_gradient_is_slope(ours({.queries = 5, .keys = 13}), inputs({.queries = 5, .keys = 13}));
  const Problem masked = {.queries = 13,
                          .keys = 13,
                          .pattern = window(4, 6),
                          .mask = {mask, mask},
                          .dropout = {0.3, 8}};
  expect_gradient_is_slope(ours(masked), inputs(masked));
}

TEST(Attention, GivesZeroAndNoGradientWithoutAVisibleKey) {
  const Problem p = {.queries = 6, .keys = 6, .mask = {ragged_mask(6), {}}};
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Differentiated result = differentiate(ours(p), inputs(p), type);
    EXPECT_TRUE(result.value[2].eq(0).all().item<bool>());
    for (const Tensor& g : result.gradients) EXPECT_TRUE(g[2].eq(0).all().item<bool>());
  }
}

TEST(Attention, NeverReadsMaskedRows) {
  Problem p = {.queries = 21, .keys = 21, .mask = {ragged_mask(21), ragged_mask(21)}};
  std::vector<Tensor> poisoned;
  for (const Tensor& t : inputs(p)) {
    const Tensor hidden = p.mask.keys.eq(0).unsqueeze(-1).unsqueeze(-1);
    poisoned.push_back(t.masked_fill(hidden, std::numeric_limits<double>::quiet_NaN()));
  }
  const Differentiated clean = differentiate(ours(p), inputs(p), at::kFloat);
  const Differentiated dirty = differentiate(ours(p), poisoned, at::kFloat);
  EXPECT_TRUE(at::equal(clean.value, dirty.value));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(clean.gradients[i], dirty.gradients[i])) << "input " << i;
  }
}

TEST(Attention, TakesStridedInputs) {
  const Problem p = {.queries = 10, .keys = 10, .dropout = {0.1, 3}};
  const auto transposed = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) {
      return f({in[0].transpose(1, 2), in[1].transpose(1, 3), in[2].transpose(0, 1)});
    };
  };
  const std::vector<Tensor> in = {random_tensor({kBatch, kHeads, 10, 8}, 1),
                                  random_tensor({kBatch, 8, kHeads, 10}, 2),
                                  random_tensor({10, kBatch, kHeads, 8}, 3)};
  expect_agrees(transposed(ours(p)), at::kFloat, transposed(oracle(p)), in);
}

TEST(Attention, TakesAStridedGradient) {
  const Problem p = {.queries = 10, .keys = 12};
  const auto transposed = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) { return f(in).transpose(1, 3); };
  };
  expect_agrees(transposed(ours(p)), at::kFloat, transposed(oracle(p)), inputs(p));
}

TEST(Attention, HasTheSameBitsAtAnyNumberOfThreads) {
  const Problem p = {.queries = 200, .keys = 200, .dropout = {0.1, 4}};
  const int before = num_threads();
  set_num_threads(1);
  const Differentiated one = differentiate(ours(p), inputs(p), at::kFloat);
  set_num_threads(3);
  const Differentiated three = differentiate(ours(p), inputs(p), at::kFloat);
  set_num_threads(before);
  EXPECT_TRUE(at::equal(one.value, three.value));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(one.gradients[i], three.gradients[i]));
}

TEST(PackedAttention, EqualsUnpackedBitForBit) {
  for (const int64_t length : {1, 19, 140}) {
    const Tensor mask = ragged_mask(length);
    const Problem p = {.queries = length,
                       .keys = length,
                       .pattern = diagonal_pattern(length, 8),
                       .mask = {mask, mask},
                       .dropout = {0.1, 6}};
    for (const Problem& each : {Problem{.queries = length, .keys = length}, p}) {
      const auto in = inputs(each);
      const Tensor qkv = at::stack({in[0], in[1], in[2]}, 2);
      for (const auto type : {at::kFloat, at::kDouble}) {
        const Differentiated apart = differentiate(ours(each), in, type);
        const Differentiated together = differentiate(packed(each), {qkv}, type);
        EXPECT_TRUE(at::equal(together.value, apart.value)) << "length " << length;
        EXPECT_TRUE(at::equal(together.gradients[0], at::stack(apart.gradients, 2)))
            << "length " << length;
      }
    }
  }
}

TEST(PackedAttention, GradientIsTheSlope) {
  const Problem p = {.queries = 9, .keys = 9, .dropout = {0.2, 6}};
  expect_gradient_is_slope(packed(p), {random_tensor({kBatch, 9, 3, kHeads, 8}, 7)});
}

TEST(DiagonalPattern, ShowsEachBlockItself) {
  for (const auto& [length, block] : {std::pair{1, 4}, {4, 4}, {9, 4}, {3, 50}}) {
    const Tensor allowed = pattern_allows(diagonal_pattern(length, block), 1, length, length);
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t j = 0; j < length; ++j) {
        EXPECT_EQ(allowed[0][0][i][j].item<bool>(), i / block == j / block);
      }
    }
  }
}

}  // namespace
}  // namespace lra::ops
