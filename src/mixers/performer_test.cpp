// The oracle of Performer, its released variant, and what makes its random features what they are.
#include <cmath>

#include "io/toml.h"
#include "mixers/random_features.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {

using at::Tensor;

namespace {

at::Tensor performer(const OracleInput& in);

const ConformanceRow kPerformerRow{"performer", performer, "num_features = 7", 1};

bool is_relu(const OracleInput& in) {
  const ConfigValue* features = in.config.find("features");
  return features && std::get<std::string>(features->value) == "relu";
}

// phi(x) up to a factor that `largest_over` shares: [B, L, H, R].
Tensor feature_map(const OracleInput& in, const Tensor& x_BLHE, at::IntArrayRef largest_over) {
  if (is_relu(in)) return at::relu(x_BLHE) + 1e-3;
  const Tensor scaled = x_BLHE / std::pow(in.shape.attention.head_dim, 0.25);
  const Tensor log_phi = at::einsum("blhe,re->blhr", {scaled, in.parameters.at("features")}) -
                         scaled.square().sum(-1, true) / 2;
  return (log_phi - log_phi.detach().amax(largest_over, true)).exp();
}

Tensor performer(const OracleInput& in) {
  Tensor weights_BHLS =
      at::einsum("blhr,bshr->bhls", {feature_map(in, heads_of(in, "qkv.weight", 0), {3}),
                                     feature_map(in, heads_of(in, "qkv.weight", 1), {1, 3})});
  weights_BHLS = weights_BHLS * in.valid_BL.to(at::kDouble).unsqueeze(1).unsqueeze(1) *
                 pairs_in_order(in).to(at::kDouble);
  const Tensor sums = weights_BHLS.sum(-1, true);
  weights_BHLS = weights_BHLS / at::where(sums.gt(0), sums, 1);
  return merge_heads(in,
                     at::einsum("bhls,bshe->blhe", {weights_BHLS, heads_of(in, "qkv.weight", 2)}));
}

TEST(Performer, AgreesWithItsOracleInEachVariant) {
  // Rounding switches some ReLUs on or off, and their gradients with them.
  expect_variant_agrees(kPerformer, performer, "features = 'relu'",
                        {.value = 0x1p-6, .gradient = 0x1p-3});
  expect_variant_agrees(kPerformer, performer, "features = 'relu'\ncausal = true",
                        {.value = 0x1p-6, .gradient = 0x1p-3});
  expect_variant_agrees(kPerformer, performer, "num_features = 7\ncausal = true");
  expect_variant_agrees(kPerformer, performer, "num_features = 2");
  expect_variant_agrees(kPerformer, performer, "num_features = 12\nnorms = 'fixed'");
}

std::shared_ptr<SequenceLayer> make(const std::string& settings, const LayerShape& shape,
                                    uint64_t seed = 1) {
  return kPerformer.make(layers::Initializer(seed), parse_toml(settings, "test settings"), shape);
}

constexpr LayerShape kShape{
    .model_dim = 8, .attention = {.heads = 2, .head_dim = 4}, .max_length = 12};

// Output of the mixer at a training step, or outside training.
Tensor at_step(SequenceLayer& mixer, int64_t step, bool training = true) {
  const at::NoGradGuard no_grad;
  layers::Context context;
  context.training = training;
  context.step = step;
  return mixer.forward(ops::random_tensor({2, 12, 8}, 3, at::kFloat) / 2, context);
}

TEST(Performer, DrawsItsFeaturesAgainAfterSoManySteps) {
  const auto mixer = make("redraw = 10", kShape);
  const Tensor first = at_step(*mixer, 0);
  EXPECT_TRUE(at::equal(at_step(*mixer, 9), first));
  const Tensor second = at_step(*mixer, 10);
  EXPECT_FALSE(at::equal(second, first));
  EXPECT_TRUE(at::equal(at_step(*mixer, 19), second));
  EXPECT_FALSE(at::equal(at_step(*mixer, 20), second));
  EXPECT_TRUE(at::equal(at_step(*make("redraw = 10", kShape), 15), second)) << "a resumed run";
  EXPECT_TRUE(at::equal(at_step(*mixer, 15, false), first)) << "evaluation";
}

TEST(Performer, KeepsItsFeaturesByDefault) {
  const auto mixer = make("", kShape);
  EXPECT_TRUE(at::equal(at_step(*mixer, 123456), at_step(*mixer, 0, false)));
}

TEST(Performer, RefusesSettingsOutOfRange) {
  for (const char* settings : {"num_features = 0", "num_features = 65537", "redraw = -1",
                               "features = 'cos'", "norms = 'none'"}) {
    EXPECT_THROW(make(settings, kShape), Error) << settings;
  }
}

TEST(Performer, ReluFeaturesNeedNoRandomNumbers) {
  EXPECT_TRUE(make("features = 'relu'", kShape)->named_buffers().is_empty());
}

// The error of the estimate falls with the square root of the number of features.
TEST(Performer, ApproachesSoftmaxAttention) {
  const auto error_with = [](const std::string& num_features) {
    const auto mixer = make("num_features = " + num_features, kShape);
    OracleInput in{.parameters = {},
                   .shape = kShape,
                   .config = {},
                   .x_BLD = ops::random_tensor({2, 12, 8}, 3) / 2,
                   .valid_BL = at::ones({2, 12}, at::kBool),
                   .dropout = {}};
    for (const auto& item : mixer->named_parameters()) {
      in.parameters[item.key()] = item.value().detach().to(at::kDouble);
    }
    return ops::relative_error(at_step(*mixer, 0),
                               self_attention(in, at::ones({12, 12}, at::kBool)));
  };
  const double of_many = error_with("16384");
  EXPECT_LT(of_many, 0.05);
  EXPECT_LT(4 * of_many, error_with("16")) << "32 is expected";
}

TEST(RandomFeatures, AreOrthogonalWithinABlock) {
  for (const int64_t width : {1, 2, 5, 64}) {
    const int64_t count = 2 * width + (width + 1) / 2;
    const Tensor w = orthogonal_features(count, width, FeatureNorms::kGaussian, 7).to(at::kDouble);
    for (int64_t first = 0; first < count; first += width) {
      const Tensor block = w.narrow(0, first, std::min(width, count - first));
      const Tensor unit = block / block.square().sum(1, true).sqrt();
      const Tensor products = at::matmul(unit, unit.t());
      EXPECT_LE((products - at::eye(unit.size(0), at::kDouble)).abs().max().item<double>(), 1e-6);
    }
  }
}

TEST(RandomFeatures, AreAFunctionOfTheKey) {
  const auto drawn = [](uint64_t key) {
    return orthogonal_features(10, 4, FeatureNorms::kGaussian, key);
  };
  EXPECT_TRUE(at::equal(drawn(1), drawn(1)));
  EXPECT_FALSE(at::equal(drawn(1), drawn(2)));
}

// The components of a row are Gaussian one by one: over 6000 rows the deviations of the mean of
// w, w^2 and w^4 are 0.0065, 0.009 and 0.06 at most.
TEST(RandomFeatures, HaveGaussianComponents) {
  const Tensor w = orthogonal_features(6000, 4, FeatureNorms::kGaussian, 3).to(at::kDouble);
  const auto mean = [&](const Tensor& t) { return t.mean().item<double>(); };
  EXPECT_NEAR(mean(w), 0, 0.04);
  EXPECT_NEAR(mean(w.square()), 1, 0.05);
  EXPECT_NEAR(mean(w.square().square()), 3, 0.3);
  const Tensor norms = w.square().sum(1);
  EXPECT_NEAR(norms.var().item<double>(), 8, 0.8) << "chi-square with four degrees of freedom";
}

TEST(RandomFeatures, CanHaveOneLength) {
  const Tensor w = orthogonal_features(9, 4, FeatureNorms::kFixed, 3);
  EXPECT_LE((w.square().sum(1) - 4).abs().max().item<double>(), 1e-5);
}

// E[exp(w . x - |x|^2 / 2) exp(w . y - |y|^2 / 2)] = exp(x . y) (lemma 1). At 40000 rows the
// deviation of the mean is below 0.01.
TEST(RandomFeatures, EstimateTheSoftmaxKernelWithoutBias) {
  const Tensor w = orthogonal_features(40000, 4, FeatureNorms::kGaussian, 5).to(at::kDouble);
  const Tensor x = at::tensor({0.5, -0.3, 0.2, 0.4}, at::kDouble),
               y = at::tensor({0.1, 0.6, -0.4, 0.3}, at::kDouble);
  const Tensor sum = x + y;
  const double estimate =
      (at::mv(w, sum) - (x.square().sum() + y.square().sum()) / 2).exp().mean().item<double>();
  EXPECT_NEAR(estimate, std::exp(x.dot(y).item<double>()), 0.03);
}

}  // namespace
}  // namespace lra::mixers
