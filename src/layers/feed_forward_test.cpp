#include "layers/feed_forward.h"

#include <gtest/gtest.h>

#include "ops/test_tensors.h"

namespace lra::layers {
namespace {

using at::Tensor;

TEST(GatedFeedForward, AgreesWithItsDefinitionAndGradient) {
  GatedFeedForward layer(Initializer(1), 6, 10);
  layer.to(at::kDouble);
  const auto p = layer.named_parameters();
  const Tensor x = ops::random_tensor({2, 5, 6}, 1);
  const auto parts = at::linear(x, p["fc1.weight"], p["fc1.bias"]).chunk(2, -1);
  const Tensor expected =
      at::linear(parts[0] * at::sigmoid(parts[1]), p["fc2.weight"], p["fc2.bias"]);
  EXPECT_LE(ops::relative_error(layer.forward(x, 0, 0), expected), 1e-12);
  ops::expect_gradient_is_slope(
      [&](const std::vector<Tensor>& in) { return layer.forward(in[0], 0.3, 7); }, {x});
}

TEST(TiedDropout, DropsChannelsAlongTheLength) {
  const Tensor x = at::ones({4, 50, 200});
  EXPECT_TRUE(at::equal(tied_dropout(x, 0, 1), x));
  const Tensor y = tied_dropout(x, 0.25, 1);
  EXPECT_TRUE(at::equal(y, y.narrow(1, 0, 1).expand_as(y)));
  EXPECT_NEAR(y.eq(0).to(at::kDouble).mean().item<double>(), 0.25, 0.06);
  EXPECT_FALSE(at::equal(y[0], y[1]));
  EXPECT_FALSE(at::equal(y, tied_dropout(x, 0.25, 2)));
}

}  // namespace
}  // namespace lra::layers
