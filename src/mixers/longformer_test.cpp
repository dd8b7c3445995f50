// Longformer: its dense oracle, causal attention, and no global token as released.
#include "mixers/test_oracles.h"

namespace lra::mixers {
namespace {

at::Tensor longformer_oracle(const OracleInput& in);

const ConformanceRow kLongformerRow{"longformer", longformer_oracle,
                                    "window = 6\nglobal_tokens = 2\ncausal = false", 0};

using at::Tensor;

// bool [L, L]: the window, and everything for global rows and columns; nothing later if causal.
Tensor allowed_pairs(int64_t length, int64_t window, int64_t globals, bool causal) {
  Tensor allowed = at::zeros({length, length}, at::kBool);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      const bool seen = i < globals || j < globals || std::abs(i - j) <= window / 2;
      if (seen && !(causal && j > i)) allowed[i][j] = true;
    }
  }
  return allowed;
}

uint64_t part_key(const OracleInput& in, uint32_t part) {
  return derive_key(in.dropout.key, RandomUse::kDropout, part);
}

// Factors of the weights [B, H, L, L]: those of the global rows, of the global columns and of the
// window, each counted from its own first row and column.
Tensor dropped(const OracleInput& in, int64_t globals) {
  const int64_t batch = in.x_BLD.size(0), heads = in.shape.attention.heads,
                length = in.x_BLD.size(1);
  const auto factors = [&](int64_t rows, int64_t columns, uint32_t part) {
    return ops::attention_dropout_factors({batch, heads, rows, columns},
                                          {in.dropout.rate, part_key(in, part)});
  };
  const int64_t others = length - globals;
  return at::cat({factors(globals, length, 0),
                  at::cat({factors(others, globals, 2), factors(others, others, 1)}, 3)},
                 2);
}

constexpr Conformance conformance(const char* config) {
  return {"longformer", longformer_oracle, config, 0};
}

TestedMixer two_longformer_heads(const Conformance& row, int64_t length) {
  return {kLongformer,
          row,
          {.model_dim = 6, .attention = {.heads = 2, .head_dim = 5}, .max_length = length}};
}

Tensor longformer_oracle(const OracleInput& in) {
  const int64_t length = in.x_BLD.size(1);
  const int64_t globals = std::min(setting(in, "global_tokens"), length);
  const Tensor allowed =
      ops::masks_allow(allowed_pairs(length, setting(in, "window"), globals,
                                     std::get<bool>(in.config.find("causal")->value))
                           .unsqueeze(0)
                           .unsqueeze(0),
                       {.keys = in.valid_BL, .queries = in.valid_BL});
  // [B, L, H, E] products of each kind of row, then row by row the kind it is of.
  const Tensor is_global_L1 = (at::arange(length) < globals).unsqueeze(1);
  const auto scores_of = [&](const Tensor& q, const Tensor& k) {
    return at::einsum("blhe,bshe->bhls", {q, k}) / std::sqrt(in.shape.attention.head_dim);
  };
  Tensor scores = scores_of(heads_of(in, "qkv.weight", 0), heads_of(in, "qkv.weight", 1));
  if (globals > 0) {
    scores = at::where(is_global_L1,
                       scores_of(heads_of(in, "global_query.weight", 0),
                                 heads_of(in, "global_key_value.weight", 0)),
                       scores);
  }
  Tensor weights = scores.masked_fill(~allowed, -1e30).softmax(-1) * allowed;
  if (in.dropout.rate > 0) weights = weights * dropped(in, globals);
  const auto values = [&](const char* parameter, int64_t part, const Tensor& rows) {
    return at::einsum("bhls,bshe->blhe", {weights * rows, heads_of(in, parameter, part)});
  };
  Tensor out = values("qkv.weight", 2, ~is_global_L1);
  if (globals > 0) out = out + values("global_key_value.weight", 1, is_global_L1);
  return merge_heads(in, out);
}

TEST(Longformer, AgreesWithItsDefinitionForEverySetting) {
  for (const char* config : {"window = 6\nglobal_tokens = 0\ncausal = false",
                             "window = 6\nglobal_tokens = 0\ncausal = true",
                             "window = 6\nglobal_tokens = 1\ncausal = true",
                             "window = 4\nglobal_tokens = 3\ncausal = true",
                             "window = 0\nglobal_tokens = 1\ncausal = false",
                             "window = 500\nglobal_tokens = 40\ncausal = false"}) {
    const Conformance row = conformance(config);
    for (const int64_t length : {1, 3, 4, 37}) {
      SCOPED_TRACE(testing::Message() << config << " length " << length);
      const TestedMixer mixer = two_longformer_heads(row, length);
      const layers::Context context{ragged_mask(length), 0.2, 77};
      ops::expect_agrees(mixer.function(context, at::kFloat), at::kFloat, mixer.oracle(context),
                         mixer.inputs(ops::random_tensor({3, length, 6}, 9)),
                         {.value = 1e-5, .gradient = 1e-4});
    }
  }
}

TEST(Longformer, SeesNothingLaterWhenCausal) {
  constexpr int64_t kLength = 30, kQuery = 17;
  const Conformance row = conformance("window = 10\nglobal_tokens = 2\ncausal = true");
  const auto mixer = two_longformer_heads(row, kLength).make(at::kFloat);
  Tensor x = ops::random_tensor({1, kLength, 6}, 5, at::kFloat).set_requires_grad(true);
  mixer->forward(x, {})[0][kQuery].sum().backward();
  const Tensor seen = x.grad()[0].ne(0).any(-1);
  for (int64_t j = 0; j < kLength; ++j) {
    EXPECT_EQ(seen[j].item<bool>(), j < 2 || (j >= kQuery - 5 && j <= kQuery)) << j;
  }
}

TEST(Longformer, HasNoGlobalProjectionsWithoutGlobalTokens) {
  const Conformance with = conformance("global_tokens = 1"),
                    without = conformance("global_tokens = 0");
  EXPECT_EQ(two_longformer_heads(with, 8).make(at::kFloat)->parameters().size(), 4U);
  EXPECT_EQ(two_longformer_heads(without, 8).make(at::kFloat)->parameters().size(), 2U);
}

TEST(Longformer, RefusesSettingsOutOfRange) {
  for (const char* config : {"window = 7", "window = -2", "global_tokens = -1"}) {
    const Conformance row = conformance(config);
    EXPECT_THROW(two_longformer_heads(row, 8).make(at::kFloat), Error) << config;
  }
}

}  // namespace
}  // namespace lra::mixers
