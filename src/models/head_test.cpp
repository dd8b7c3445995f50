#include "models/head.h"

#include "ops/test_tensors.h"

namespace lra::models {
namespace {

using at::Tensor;

class Classifier : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int64_t kDim = 256, kHidden = 512, kClasses = 10;
  ClassifierHead make() const {
    ModelConfig config;
    config.mlp_dim = kHidden;
    config.classifier = GetParam();
    return {layers::Initializer(4), config, kDim, kClasses};
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
