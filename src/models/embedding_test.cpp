#include "models/embedding.h"

#include "layers/positions.h"
#include "ops/test_tensors.h"

namespace lra::models {
namespace {

using at::Tensor;

constexpr int64_t kVocabulary = 2000, kPositions = 600, kDim = 128;

Embedding make(const std::string& positions, const std::string& pooling, uint64_t seed = 1) {
  ModelConfig config;
  config.embed_dim = kDim;
  config.positions = positions;
  config.pooling = pooling;
  return {layers::Initializer(seed), config, {.vocabulary = kVocabulary}, kPositions};
}

Tensor parameter(const Embedding& embedding, const std::string& name) {
  return embedding.named_parameters()[name];
}

TEST(Embedding, StartsFromItsDistributions) {
  const Embedding embedding = make("learned", "cls");
  const Tensor token = parameter(embedding, "token"), position = parameter(embedding, "position");
  EXPECT_NEAR(token.mean().item<double>(), 0, 5 / std::sqrt(double{kVocabulary * kDim}));
  EXPECT_NEAR(token.std().item<double>(), 1, 0.01);
  EXPECT_NEAR(position.mean().item<double>(), 0, 0.02 * 5 / std::sqrt(double{kPositions * kDim}));
  EXPECT_NEAR(position.std().item<double>(), 0.02, 0.0004);
  EXPECT_TRUE(parameter(embedding, "cls").eq(0).all().item<bool>());
}

TEST(Embedding, AddsPositionsToRowsOfItsTable) {
  const at::NoGradGuard no_grad;
  const Tensor tokens = at::tensor({5, 0, 1999, 5, 7, 8}, at::kInt).view({2, 3});
  for (const char* positions : {"learned", "sinusoid"}) {
    const Embedding embedding = make(positions, "mean");
    const Tensor table = positions == std::string("learned")
                             ? parameter(embedding, "position")
                             : layers::sinusoid_table(kPositions, kDim);
    const Tensor y = embedding.forward({.tokens_BL = tokens}, {});
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t id = tokens[b][i].item<int32_t>();
        EXPECT_TRUE(at::equal(y[b][i], parameter(embedding, "token")[id] + table[i]));
      }
    }
    EXPECT_TRUE(at::equal(embedding.forward({.tokens_BL = tokens.to(at::kLong)}, {}), y));
  }
}

TEST(Embedding, PutsClsInFrontAtPositionZero) {
  const at::NoGradGuard no_grad;
  const Embedding embedding = make("sinusoid", "cls");
  parameter(embedding, "cls").fill_(3);
  const Tensor y = embedding.forward({.tokens_BL = at::full({2, 4}, 9, at::kInt)}, {}),
               table = layers::sinusoid_table(kPositions, kDim);
  ASSERT_EQ(y.sizes(), (std::vector<int64_t>{2, 5, kDim}));
  EXPECT_TRUE(at::equal(y[1][0], 3 + table[0]));
  EXPECT_TRUE(at::equal(y[1][4], parameter(embedding, "token")[9] + table[4]));
}

TEST(Embedding, RoundsToBf16AndAddsItsGradientsUpInFloat32) {
  const Embedding embedding = make("learned", "mean");
  // In bfloat16 a sum of ones would stop at 256. Two chunks of tokens.
  const Tensor tokens = at::full({10, kPositions}, 9, at::kInt);
  const Tensor y = embedding.forward({.tokens_BL = tokens}, {}, at::kBFloat16);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_LE(ops::relative_error(y, embedding.forward({.tokens_BL = tokens}, {})), 0x1p-7);
  y.sum(at::kFloat).backward();
  Tensor expected = at::zeros({kVocabulary, kDim});
  expected[9].fill_(10.0 * kPositions);
  EXPECT_TRUE(at::equal(parameter(embedding, "token").grad(), expected));
}

TEST(Embedding, SinusoidIsNotTrained) {
  const Embedding embedding = make("sinusoid", "mean");
  EXPECT_EQ(embedding.parameters().size(), 1U);
  EXPECT_TRUE(embedding.buffers().empty()) << "it can be computed again";
}

TEST(Embedding, DropsInTrainingAlone) {
  const at::NoGradGuard no_grad;
  const Embedding embedding = make("sinusoid", "mean");
  const Tensor tokens = at::full({4, 100}, 3, at::kInt);
  const Tensor clean = embedding.forward({.tokens_BL = tokens}, {});
  const Tensor dropped = embedding.forward({.tokens_BL = tokens}, {.training = true, .seed = 1});
  EXPECT_TRUE(clean.ne(0).all().item<bool>());
  EXPECT_NEAR(dropped.eq(0).to(at::kDouble).mean().item<double>(), 0.1, 0.01);
}

TEST(Embedding, IsLeftWholeWhereOnlyBlocksDrop) {
  ModelConfig config;
  config.embed_dim = kDim;
  config.dropout = 0.5;
  config.embedding_dropout = false;
  const Embedding embedding(layers::Initializer(1), config,
                            {.length = kPositions, .vocabulary = kVocabulary}, kPositions + 1);
  const Tensor tokens = at::full({4, kPositions}, 3, at::kInt);
  EXPECT_TRUE(at::equal(embedding.forward({.tokens_BL = tokens}, {.training = true, .seed = 1}),
                        embedding.forward({.tokens_BL = tokens}, {})));
}

TEST(Embedding, RefusesMorePositionsThanItHas) {
  EXPECT_THROW(
      make("sinusoid", "cls").forward({.tokens_BL = at::zeros({1, kPositions}, at::kInt)}, {}),
      CheckFailure);
}

}  // namespace
}  // namespace lra::models
