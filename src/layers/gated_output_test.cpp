#include "layers/gated_output.h"

#include <gtest/gtest.h>

#include "ops/test_tensors.h"

namespace lra::layers {
namespace {

using at::Tensor;

Tensor defined_output(const std::string& kind, const GatedOutput& layer, const Tensor& y) {
  const Tensor g = at::gelu(y, "tanh");
  if (kind == "none") return g;
  const auto p = layer.named_parameters();
  const Tensor z = at::linear(g, p["linear.weight"], p["linear.bias"]);
  if (kind == "linear") return z;
  if (kind == "glu") return z.chunk(2, -1)[0] * z.chunk(2, -1)[1].sigmoid();
  return (kind == "half_glu1" ? g : y) * z.sigmoid();
}

TEST(GatedOutput, AgreesWithItsDefinitionAndGradient) {
  const Tensor y = 2 * ops::random_tensor({2, 5, 6}, 1);
  for (const std::string& kind : gated_outputs()) {
    SCOPED_TRACE(kind);
    GatedOutput layer(Initializer(1), 6, kind);
    layer.to(at::kDouble);
    EXPECT_LE(ops::relative_error(layer.forward(y, {}), defined_output(kind, layer, y)), 1e-12);
    for (const bool tied : {false, true}) {
      const Context context{.key = 7, .dropout = 0.3, .tied_dropout = tied};
      EXPECT_GT(ops::relative_error(layer.forward(y, context), layer.forward(y, {})), 1e-2);
      ops::expect_gradient_is_slope(
          [&](const std::vector<Tensor>& in) { return layer.forward(in[0], context); }, {y});
    }
  }
}

TEST(GatedOutput, DropsChannelsAlongTheLengthWhereTheBlockDoes) {
  const GatedOutput layer(Initializer(1), 200, "none");
  const Tensor y = at::ones({2, 50, 200});
  const Tensor tied = layer.forward(y, {.key = 7, .dropout = 0.25, .tied_dropout = true});
  EXPECT_TRUE(at::equal(tied, tied.narrow(1, 0, 1).expand_as(tied)));
  EXPECT_TRUE(tied.eq(0).any().item<bool>());
  const Tensor single = layer.forward(y, {.key = 7, .dropout = 0.25});
  EXPECT_FALSE(at::equal(single, single.narrow(1, 0, 1).expand_as(single)));
}

}  // namespace
}  // namespace lra::layers
