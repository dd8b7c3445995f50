// Sinkhorn Transformer: its dense oracle, the noise of training, and that it sorts.
#include "base/rng.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

at::Tensor sinkhorn_oracle(const OracleInput& in);

const ConformanceRow kSinkhornRow{"sinkhorn", sinkhorn_oracle,
                                  "block = 8\niterations = 3\ntemperature = 0.75", 0};

using at::Tensor;

double number(const OracleInput& in, const char* name) {
  return std::get<double>(in.config.find(name)->value);
}

int64_t block_of(const OracleInput& in) {
  return std::min(setting(in, "block"), in.shape.max_length);
}

// A block's logits over all blocks to a soft permutation, rows and columns divided by their sums.
Tensor doubly_stochastic(const Tensor& logits_NN, int64_t iterations) {
  Tensor s = logits_NN.exp();
  for (int64_t n = 0; n < iterations; ++n) {
    s = s / s.sum(1, true);
    s = s / s.sum(0, true);
  }
  return s;
}

// Noise (n, l) of plane `plane` from the counter, under the key of the step.
Tensor gumbel(int64_t blocks, uint64_t key, int64_t plane) {
  Tensor noise = at::empty({blocks, blocks}, at::kDouble);
  for (int64_t n = 0; n < blocks; ++n) {
    RandomStream stream(derive_key(key, RandomUse::kMixer), static_cast<uint32_t>(plane),
                        static_cast<uint32_t>(n));
    for (int64_t l = 0; l < blocks; ++l) {
      noise[n][l] = -std::log(-std::log((stream.next_u32() + 0.5) / 4294967296.0));
    }
  }
  return noise;
}

// [L', L'], L' = N b: row n b + r of the sorted sequence as a sum over tokens. k [L', E] has zeros
// for padding, which is all that follows the first `valid` tokens.
Tensor sorting_matrix(const OracleInput& in, const Tensor& k, int64_t b, int64_t h, int64_t valid,
                      bool noise) {
  const int64_t block = block_of(in), all = k.size(0) / block;
  const int64_t blocks = (valid + block - 1) / block;
  if (blocks == 0) return at::zeros({k.size(0), k.size(0)}, at::kDouble);
  const Tensor sums_NE = k.narrow(0, 0, blocks * block).view({blocks, block, -1}).sum(1);
  const Tensor weight_NE = in.parameters.at("sort")[h].narrow(0, 0, blocks);
  Tensor logits = at::einsum("ne,le->nl", {sums_NE, weight_NE});
  if (noise) logits = logits + gumbel(blocks, in.dropout.key, b * in.shape.attention.heads + h);
  const Tensor s = doubly_stochastic(logits / number(in, "temperature"), setting(in, "iterations"));
  return at::kron(at::constant_pad_nd(s, {0, all - blocks, 0, all - blocks}),
                  at::eye(block, at::kDouble));
}

// Query i sees the sorted rows of its block where some block has a token, and its own block.
Tensor sinkhorn_pairs(const OracleInput& in, int64_t padded) {
  const int64_t batch = in.x_BLD.size(0), length = in.x_BLD.size(1), block = block_of(in);
  Tensor allowed = at::zeros({batch, 1, length, 2 * padded}, at::kBool);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t valid = in.valid_BL[b].sum().item<int64_t>();
    for (int64_t i = 0; i < valid; ++i) {
      const int64_t first = i / block * block;
      allowed[b][0][i].narrow(0, first, std::min(block, valid)).fill_(true);
      allowed[b][0][i].narrow(0, padded + first, std::min(block, valid - first)).fill_(true);
    }
  }
  return allowed;
}

// Factors that dropout applies to the weights [B, H, L, 2 L']; sorted rows first.
Tensor dropout_factors_of(const OracleInput& in, int64_t padded) {
  std::vector<Tensor> parts;
  for (const uint32_t part : {0, 1}) {
    const uint64_t key = derive_key(in.dropout.key, RandomUse::kDropout, part);
    parts.push_back(ops::attention_dropout_factors(
        {in.x_BLD.size(0), in.shape.attention.heads, in.x_BLD.size(1), padded},
        {in.dropout.rate, key}));
  }
  return at::cat(parts, -1);
}

// Valid tokens must be a prefix.
Tensor definition(const OracleInput& in, bool noise) {
  const int64_t length = in.x_BLD.size(1), block = block_of(in);
  const int64_t padded = (length + block - 1) / block * block;
  const auto into_blocks = [&](int64_t part) {
    const Tensor x = heads_of(in, "qkv.weight", part) * in.valid_BL.unsqueeze(-1).unsqueeze(-1);
    return at::constant_pad_nd(x, {0, 0, 0, 0, 0, padded - length});
  };
  const Tensor k = into_blocks(1), v = into_blocks(2);
  std::vector<Tensor> examples_k, examples_v;
  for (int64_t b = 0; b < k.size(0); ++b) {
    std::vector<Tensor> heads_k, heads_v;
    for (int64_t h = 0; h < in.shape.attention.heads; ++h) {
      const Tensor k_LE = k[b].select(1, h), v_LE = v[b].select(1, h);
      const Tensor sorting =
          sorting_matrix(in, k_LE, b, h, in.valid_BL[b].sum().item<int64_t>(), noise);
      heads_k.push_back(at::cat({at::mm(sorting, k_LE), k_LE}));
      heads_v.push_back(at::cat({at::mm(sorting, v_LE), v_LE}));
    }
    examples_k.push_back(at::stack(heads_k, 1));
    examples_v.push_back(at::stack(heads_v, 1));
  }
  const Tensor q = heads_of(in, "qkv.weight", 0), allowed = sinkhorn_pairs(in, padded);
  const Tensor scores = at::einsum("blhe,bshe->bhls", {q, at::stack(examples_k)}) /
                        std::sqrt(static_cast<double>(q.size(3)));
  const Tensor weights =
      scores.masked_fill(~allowed, -1e30).softmax(-1) * allowed * dropout_factors_of(in, padded);
  return merge_heads(in, at::einsum("bhls,bshe->blhe", {weights, at::stack(examples_v)}));
}

Tensor noisy_oracle(const OracleInput& in) { return definition(in, true); }

constexpr const char* kConfig = "block = 8\niterations = 3\ntemperature = 0.75";

TestedMixer two_sinkhorn_heads(const Conformance& row, int64_t length) {
  return {kSinkhorn,
          row,
          {.model_dim = 6, .attention = {.heads = 2, .head_dim = 5}, .max_length = length}};
}

Tensor sinkhorn_oracle(const OracleInput& in) { return definition(in, false); }

namespace {

TEST(Sinkhorn, AgreesWithItsDefinitionForBlocksOfEverySize) {
  for (const char* block : {"1", "5", "100"}) {
    const std::string settings =
        std::string("iterations = 2\ntemperature = 0.75\nblock = ") + block;
    expect_variant_agrees(kSinkhorn, sinkhorn_oracle, settings.c_str());
  }
}

TEST(Sinkhorn, AddsGumbelNoiseWhileTraining) {
  const Conformance row{"sinkhorn", noisy_oracle, kConfig, 0};
  for (const int64_t length : {5, 24, 37}) {
    const TestedMixer mixer = two_sinkhorn_heads(row, length);
    for (const Tensor& mask : {Tensor(), ragged_mask(length)}) {
      const layers::Context context{.mask_BL = mask, .key = 31, .training = true};
      ops::expect_agrees(mixer.function(context, at::kFloat), at::kFloat, mixer.oracle(context),
                         mixer.inputs(ops::random_tensor({3, length, 6}, 9)),
                         {.value = 1e-5, .gradient = 1e-4});
    }
  }
}
}  // namespace

TEST(Sinkhorn, DrawsOtherNoiseUnderAnotherKeyAndNoneWhenToldSo) {
  const auto run = [](const char* config, uint64_t key, bool training) {
    const Conformance row{"sinkhorn", sinkhorn_oracle, config, 0};
    const Tensor x = ops::random_tensor({1, 40, 6}, 9, at::kFloat);
    const layers::Context context{.mask_BL = {}, .key = key, .training = training};
    return two_sinkhorn_heads(row, 40).make(at::kFloat)->forward(x, context);
  };
  EXPECT_FALSE(at::equal(run("block = 8", 1, true), run("block = 8", 2, true)));
  EXPECT_FALSE(at::equal(run("block = 8", 1, true), run("block = 8", 1, false)));
  EXPECT_TRUE(at::equal(run("block = 8", 1, false), run("block = 8", 2, false)));
  EXPECT_TRUE(at::equal(run("block = 8\nnoise = false", 1, true), run("block = 8", 1, false)));
}

// Blocks of one token, and a sort network that sends each block one place on: with queries of 0
// every output is the mean of its own value and of its neighbour's.
TEST(Sinkhorn, MovesBlocksToTheirSortedPlaces) {
  constexpr int64_t kBlocks = 5;
  const Conformance row{"sinkhorn", sinkhorn_oracle, "block = 1\niterations = 8", 0};
  const TestedMixer tested{kSinkhorn,
                           row,
                           {.model_dim = kBlocks,
                            .attention = {.heads = 1, .head_dim = kBlocks},
                            .max_length = kBlocks}};
  const auto mixer = tested.make(at::kDouble);
  const Tensor identity = at::eye(kBlocks, at::kDouble);
  const at::NoGradGuard no_grad;
  auto parameters = mixer->named_parameters();
  parameters["qkv.weight"].copy_(at::cat({at::zeros_like(identity), identity, identity}));
  parameters["sort"].copy_((30 * identity.roll(1, 0)).unsqueeze(0));
  parameters["output.weight"].copy_(identity);
  const Tensor y = mixer->forward(identity.unsqueeze(0), {})[0];
  const Tensor partner = identity.roll(1, 0).t();
  EXPECT_LE(ops::relative_error(y, (identity + partner) / 2), 1e-9);
}

TEST(Sinkhorn, ReachesFarBlocks) {
  constexpr int64_t kLength = 64;
  const Conformance row{"sinkhorn", sinkhorn_oracle, "block = 8", 0};
  const auto mixer = two_sinkhorn_heads(row, kLength).make(at::kDouble);
  Tensor x = ops::random_tensor({1, kLength, 6}, 5).set_requires_grad(true);
  mixer->forward(x, {})[0][0].sum().backward();
  EXPECT_TRUE(x.grad()[0].ne(0).any(-1).all().item<bool>());
}

TEST(Sinkhorn, RefusesSettingsOutOfRange) {
  for (const char* config : {"block = 0", "iterations = 0", "temperature = 0.0"}) {
    const Conformance row{"sinkhorn", sinkhorn_oracle, config, 0};
    EXPECT_THROW(two_sinkhorn_heads(row, 8).make(at::kFloat), Error) << config;
  }
}

}  // namespace
}  // namespace lra::mixers
