// BigBird: its dense oracle, the random blocks and their released range.
#include <set>

#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

at::Tensor bigbird_oracle(const OracleInput& in);

const ConformanceRow kBigbirdRow{"bigbird", bigbird_oracle,
                                 "block = 4\nrandom_blocks = 2\nrandom_range = 'all'", 0};

using at::Tensor;

// Blocks that a query block of a sequence of `blocks` blocks attends to, before the random ones.
std::set<int64_t> fixed_blocks(int64_t query, int64_t blocks) {
  std::set<int64_t> seen;
  for (int64_t j = 0; j < blocks; ++j) {
    const bool global = query == 0 || query == blocks - 1 || j == 0 || j == blocks - 1;
    if (global || std::abs(query - j) <= 1) seen.insert(j);
  }
  return seen;
}

struct Settings {
  int64_t block, random_blocks, range;  // range: blocks that random ones may come from
};

Settings settings_of(const OracleInput& in) {
  Settings s{setting(in, "block"), setting(in, "random_blocks"), 1 << 30};
  const auto range = std::get<std::string>(in.config.find("random_range")->value);
  if (range == "first_1024") s.range = 1024 / s.block;
  return s;
}

// The random blocks: while fewer than wanted, number `below(candidates)` of those left out above,
// in ascending order; one stream per head and number of blocks, query blocks in turn.
std::vector<std::set<int64_t>> seen_blocks(const Settings& s, int64_t blocks, uint32_t head) {
  const uint64_t key = layers::Initializer(1).of("pattern").key();  // the seed of TestedMixer
  RandomStream stream(derive_key(key, RandomUse::kMixer, head, static_cast<uint32_t>(blocks)));
  std::vector<std::set<int64_t>> rows;
  for (int64_t query = 0; query < blocks; ++query) {
    std::set<int64_t> seen = fixed_blocks(query, blocks);
    std::vector<int64_t> candidates;
    for (int64_t j = 0; j < std::min(blocks, s.range); ++j) {
      if (!seen.contains(j)) candidates.push_back(j);
    }
    const int64_t count = static_cast<int64_t>(candidates.size());
    const size_t wanted = seen.size() + static_cast<size_t>(std::min(count, s.random_blocks));
    if (count <= s.random_blocks) seen.insert(candidates.begin(), candidates.end());
    while (seen.size() < wanted) {
      seen.insert(candidates[stream.below(static_cast<uint32_t>(count))]);
    }
    rows.push_back(seen);
  }
  return rows;
}

// bool [H, L, L] for a sequence whose first `valid` tokens are not padding.
Tensor allowed_pairs(const OracleInput& in, int64_t valid) {
  const Settings s = settings_of(in);
  const int64_t length = in.x_BLD.size(1), blocks = (valid + s.block - 1) / s.block;
  Tensor allowed = at::zeros({in.shape.attention.heads, length, length}, at::kBool);
  for (int64_t h = 0; h < in.shape.attention.heads; ++h) {
    const auto rows = seen_blocks(s, blocks, static_cast<uint32_t>(h));
    for (int64_t i = 0; i < blocks; ++i) {
      for (const int64_t j : rows[static_cast<size_t>(i)]) {
        allowed[h]
            .slice(0, i * s.block, (i + 1) * s.block)
            .slice(1, j * s.block, (j + 1) * s.block)
            .fill_(true);
      }
    }
  }
  return allowed;
}

constexpr Conformance kReleasedRange{
    "bigbird", bigbird_oracle, "block = 64\nrandom_blocks = 3\nrandom_range = 'first_1024'", 0};

TestedMixer two_heads(const Conformance& conformance, int64_t length) {
  return {kBigBird,
          conformance,
          {.model_dim = 6, .attention = {.heads = 2, .head_dim = 5}, .max_length = length}};
}

// bool [L]: the tokens that the output of token `query` depends on.
Tensor tokens_that_reach(const char* config, int64_t length, int64_t query) {
  const Conformance row{"bigbird", bigbird_oracle, config, 0};
  const auto mixer = two_heads(row, length).make(at::kFloat);
  Tensor x = ops::random_tensor({1, length, 6}, 5, at::kFloat).set_requires_grad(true);
  mixer->forward(x, {})[0][query].sum().backward();
  return x.grad()[0].ne(0).any(-1);
}

Tensor bigbird_oracle(const OracleInput& in) {
  std::vector<Tensor> allowed;
  for (int64_t b = 0; b < in.x_BLD.size(0); ++b) {
    const Tensor positions = in.valid_BL[b].nonzero();
    allowed.push_back(
        allowed_pairs(in, positions.numel() == 0 ? 0 : positions.max().item<int64_t>() + 1));
  }
  const Tensor visible = ops::masks_allow(at::stack(allowed).logical_and(pairs_in_order(in)),
                                          {.keys = in.valid_BL, .queries = in.valid_BL});
  return merge_heads(
      in, ops::dense_attention(heads_of(in, "qkv.weight", 0), heads_of(in, "qkv.weight", 1),
                               heads_of(in, "qkv.weight", 2), visible, in.dropout));
}

TEST(BigBird, DrawsFromTheFirst1024TokensAsReleased) {
  constexpr int64_t kLength = 1300;
  const TestedMixer mixer = two_heads(kReleasedRange, kLength);
  ops::expect_agrees(mixer.function({}, at::kFloat), at::kFloat, mixer.oracle({}),
                     mixer.inputs(ops::random_tensor({1, kLength, 6}, 3)),
                     {.value = 1e-5, .gradient = 1e-4});
}

TEST(BigBird, HidesLaterTokensOfItsPattern) {
  expect_variant_agrees(kBigBird, bigbird_oracle,
                        "block = 4\nrandom_blocks = 2\nrandom_range = 'all'\ncausal = true");
}

TEST(BigBird, AttendsToEightBlocksPerHead) {
  const Tensor seen = tokens_that_reach("block = 16\nrandom_blocks = 3", 16 * 200, 16 * 100 + 5);
  const Tensor blocks = seen.view({200, 16}).sum(1);
  // Two heads with three random blocks each, among 195: they share one with probability 0.05, and
  // with this seed they do not.
  EXPECT_EQ(blocks.ne(0).sum().item<int64_t>(), 5 + 2 * 3);
  EXPECT_TRUE(blocks.eq(16).logical_or(blocks.eq(0)).all().item<bool>());
  for (const int64_t fixed : {0, 99, 100, 101, 199}) EXPECT_EQ(blocks[fixed].item<int64_t>(), 16);
}

TEST(BigBird, DrawsRandomBlocksOverTheWholeLengthEvenly) {
  constexpr int64_t kBlocks = 40, kRuns = 60;
  Tensor hits = at::zeros({kBlocks}, at::kLong);
  const Conformance row{"bigbird", bigbird_oracle, "block = 1\nrandom_blocks = 3", 0};
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const auto mixer = two_heads(row, kBlocks).make(at::kFloat, seed);
    Tensor x = ops::random_tensor({3, kBlocks, 6}, 5, at::kFloat).set_requires_grad(true);
    const Tensor y = mixer->forward(x, {});
    (y[0][10] + y[1][20] + y[2][30]).sum().backward();
    hits += x.grad().ne(0).any(-1).sum(0);
  }
  // Each of 180 rows takes about 5.5 of 35 candidates: 28 hits expected, deviation about 5.
  for (const int64_t block : {2, 5, 15, 25, 35, 37}) {
    EXPECT_NEAR(hits[block].item<int64_t>(), 28, 20) << "block " << block;
  }
}

TEST(BigBird, FirstAndLastBlockSeeEverything) {
  for (const int64_t query : {0, 3, 396, 399}) {
    EXPECT_TRUE(tokens_that_reach("block = 4", 400, query).all().item<bool>()) << query;
  }
}

TEST(BigBird, LastBlockIsThatOfTheValidLength) {
  constexpr int64_t kLength = 400, kValid = 201;
  const Conformance row{"bigbird", bigbird_oracle, "block = 4\nrandom_blocks = 0", 0};
  const auto mixer = two_heads(row, kLength).make(at::kFloat);
  Tensor x = ops::random_tensor({2, kLength, 6}, 5, at::kFloat).set_requires_grad(true);
  Tensor mask = at::ones({2, kLength}, at::kByte);
  mask[1].narrow(0, kValid, kLength - kValid).zero_();
  mixer->forward(x, {.mask_BL = mask}).select(1, 100).sum().backward();
  const Tensor seen = x.grad().ne(0).any(-1);
  EXPECT_TRUE(seen[0].narrow(0, 396, 4).all().item<bool>());
  EXPECT_FALSE(seen[0][200].item<bool>());
  EXPECT_TRUE(seen[1][200].item<bool>());
  EXPECT_EQ(seen[1].sum().item<int64_t>(), 4 + 12 + 1);
  // Known lengths agree with the mask and are trusted: the mask need not be read.
  const auto with = [&](int valid) {
    const Tensor lengths = at::tensor({int(kLength), valid}, at::kInt);
    return mixer->forward(x, {.mask_BL = mask, .lengths_B = lengths})[1];
  };
  EXPECT_TRUE(at::equal(with(kValid), mixer->forward(x, {.mask_BL = mask})[1]));
  EXPECT_FALSE(at::equal(with(100), with(kValid)));
}

TEST(BigBird, RefusesSettingsOutOfRange) {
  for (const char* config : {"block = 0", "random_blocks = -1", "random_range = 'some'"}) {
    const Conformance row{"bigbird", bigbird_oracle, config, 0};
    EXPECT_THROW(two_heads(row, 8).make(at::kFloat), Error) << config;
  }
}

}  // namespace
}  // namespace lra::mixers
