#include "models/head.h"

#include "ops/test_tensors.h"

namespace lra::models {
namespace {

using at::Tensor;

TEST(Pool, MeanIsOverValidPositionsAlone) {
  const Tensor x = ops::random_tensor({3, 5, 4}, 1);
  Tensor mask = at::zeros({3, 5}, at::kByte);
  mask[0].fill_(1);
  mask[1].narrow(0, 0, 2).fill_(1);
  const Tensor pooled = pool(x, mask, "mean");
  EXPECT_LE(ops::relative_error(pooled[0], x[0].mean(0)), 1e-12);
  EXPECT_LE(ops::relative_error(pooled[1], (x[1][0] + x[1][1]) / 2), 1e-12);
  EXPECT_TRUE(pooled[2].eq(0).all().item<bool>());
  EXPECT_LE(ops::relative_error(pool(x, {}, "mean"), x.mean(1)), 1e-12);
}

TEST(PairFeatures, JoinTheTwoTowersOfAnExample) {
  const at::Tensor pooled = at::tensor({1.0, 2.0, 3.0, 5.0}).view({2, 2});
  const at::Tensor nli = at::tensor({1.0, 2.0, 3.0, 5.0, 3.0, 10.0, -2.0, -3.0}).view({1, 8});
  EXPECT_TRUE(at::equal(pair_features(pooled, "nli"), nli));
  EXPECT_TRUE(at::equal(pair_features(pooled, "concat"), pooled.view({1, 4})));
}

TEST(Pool, ClsIsPositionZero) {
  const Tensor x = ops::random_tensor({3, 5, 4}, 2);
  EXPECT_TRUE(at::equal(pool(x, {}, "cls"), x.select(1, 0)));
}

class Classifier : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int64_t kDim = 256, kHidden = 512, kClasses = 10;
  ClassifierHead make() const {
    ModelConfig config;
    config.mlp_dim = kHidden;
    config.classifier = GetParam();
    mixers::Initializer init(4);
    return {config, kDim, kClasses, init};
  }
};

TEST_P(Classifier, AgreesWithItsDefinition) {
  ClassifierHead head = make();
  head.to(at::kDouble);
  const Tensor x = ops::random_tensor({6, kDim}, 3);
  const auto p = head.named_parameters();
  Tensor hidden = x;
  if (p.contains("hidden.weight")) {
    hidden = at::linear(x, p["hidden.weight"], p["hidden.bias"]).clamp_min(0);
  }
  const Tensor expected = at::linear(hidden, p["output.weight"], p["output.bias"]);
  EXPECT_EQ(p.contains("hidden.weight"), GetParam() == std::string("mlp"));
  EXPECT_LE(ops::relative_error(head.forward(x), expected), 1e-12);
}

TEST_P(Classifier, StartsFromLecunWeightsAndZeroBiases) {
  const ClassifierHead head = make();
  for (const auto& item : head.named_parameters()) {
    const Tensor& t = item.value();
    if (t.dim() == 1) {
      EXPECT_TRUE(t.eq(0).all().item<bool>()) << item.key();
      continue;
    }
    const double expected = 1 / std::sqrt(static_cast<double>(t.size(1)));
    EXPECT_NEAR(t.std().item<double>(), expected, 0.05 * expected) << item.key();
    EXPECT_LE(t.abs().max().item<double>(), 2 * expected / 0.8796 * 1.0001) << item.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Classifier, testing::Values("linear", "mlp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lra::models
