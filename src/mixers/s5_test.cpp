// The dense oracle of S5: a matrix of powers for each state, from the definition in complex
// numbers.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/state_space.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor s5(const OracleInput& in) {
  const ConfigTable settings = kS5.resolve(in.config);
  const bool clipped = std::get<bool>(settings.find("clip_poles")->value);
  const Tensor re = in.parameters.at("lambda_re");
  const Tensor lambda =
      at::complex(clipped ? at::where(re > -1e-4, -1e-4, re) : re, in.parameters.at("lambda_im"));
  const Tensor a = (lambda * in.parameters.at("dt").exp()).exp();
  const Tensor b = ((a - 1) / lambda).unsqueeze(1) * complex_planes(in.parameters.at("b"), 0);
  const Tensor y = dense_state_space(in, a, b, 2 * complex_planes(in.parameters.at("c"), 2));
  return gated_output(in, y, std::get<std::string>(settings.find("output")->value));
}

const ConformanceRow kS5Row{"s5", s5, "states = 8\nblocks = 2", 0};

TEST(S5, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"states = 2\nbidirectional = false",
        "states = 12\nshared_step = true\noutput = 'half_glu2'",
        "states = 6\nc_init = 'trunc_standard_normal'\noutput = 'none'",
        "states = 36\nblocks = 3\nc_init = 'complex_normal'\nclip_poles = true\noutput = 'glu'"}) {
    expect_variant_agrees(kS5, s5, settings);
  }
}

std::shared_ptr<SequenceLayer> s5_of(const std::string& settings, int64_t dim = 4) {
  return kS5.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                  {.model_dim = dim, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

Tensor parameter(const SequenceLayer& layer, const char* name) {
  return layer.named_parameters()[name].detach().to(at::kDouble);
}

// -1/2 + i w and V with (-1/2 + S) V = V diag(-1/2 + i w); B = V^H B' and C = C' V block by block.
TEST(S5, StartsAsHippoInEachBlock) {
  constexpr int64_t kStates = 24, kBlocks = 3, kBlock = kStates / kBlocks, kDim = 5;
  const auto layer = s5_of("states = 24\nblocks = 3", kDim);
  const Tensor re = parameter(*layer, "lambda_re"), im = parameter(*layer, "lambda_im");
  EXPECT_TRUE(re.eq(-0.5).all().item<bool>());
  EXPECT_TRUE(im.gt(0).all().item<bool>());
  const Tensor s = legs_antisymmetric(kBlock);
  const auto [values, vectors] = at::linalg_eigh(at::complex(at::zeros_like(s), -s));
  EXPECT_LE(ops::relative_error(im, values.narrow(0, kBlock / 2, kBlock / 2).repeat({kBlocks})),
            1e-6);
  Tensor v = vectors.narrow(1, kBlock / 2, kBlock / 2);
  v = v * (v[0].abs() / v[0]);
  const layers::Initializer init(1);
  const Tensor drawn_b = init.of("b").lecun(kDim, kStates).to(at::kComplexDouble).t();
  const Tensor drawn_c = init.of("c").lecun(kDim * 4, kStates).to(at::kComplexDouble);
  const Tensor b = complex_planes(parameter(*layer, "b"), 0);
  const Tensor c = complex_planes(parameter(*layer, "c"), 2);
  const Tensor c_planes = drawn_c.view({kDim, 2, 2, kStates}) / std::sqrt(double{kDim});
  const Tensor real_c = c_planes.select(2, 0) + c_planes.select(2, 1) * c10::complex<double>(0, 1);
  for (int64_t block = 0; block < kBlocks; ++block) {
    const int64_t at = block * kBlock, half = at / 2;
    const Tensor want_b = at::matmul(v.t().conj(), drawn_b.narrow(0, at, kBlock));
    EXPECT_LE((b.narrow(0, half, kBlock / 2) - want_b).abs().max().item<double>(), 1e-6);
    const Tensor want_c = at::matmul(real_c.narrow(2, at, kBlock), v);
    EXPECT_LE((c.narrow(2, half, kBlock / 2) - want_c).abs().max().item<double>(), 1e-6);
  }
}

// clamp, whose gradient at the bound depends on LibTorch's version, would not do.
TEST(S5, LearnsFromAPoleAtTheBoundOfClippedOnes) {
  const auto gradient_at = [](double real) {
    const auto layer = s5_of("clip_poles = true", 5);
    Tensor re = layer->named_parameters()["lambda_re"];
    {
      const at::NoGradGuard no_grad;
      re.fill_(real);
    }
    layer->forward(ops::random_tensor({1, 8, 5}, 3, at::kFloat), {}).sum().backward();
    return re.grad().abs().min().item<double>();
  };
  EXPECT_GT(gradient_at(static_cast<float>(-1e-4)), 0);
  EXPECT_EQ(gradient_at(0), 0);
}

TEST(S5, DrawsStepsBetweenItsLimits) {
  const Tensor dt = parameter(*s5_of("states = 1000\nblocks = 100\ndt_min = 0.01"), "dt").exp();
  EXPECT_EQ(dt.numel(), 500);
  EXPECT_GE(dt.min().item<double>(), 0.00999);
  EXPECT_LE(dt.max().item<double>(), 0.1001);
  EXPECT_EQ(parameter(*s5_of("shared_step = true"), "dt").numel(), 1);
}

TEST(S5, PutsItsParametersIntoGroups) {
  const std::map<std::string, std::string> expected = {
      {"dt", "dt"}, {"lambda_re", "ssm"}, {"lambda_im", "ssm"}, {"b", "b"}};
  EXPECT_EQ(s5_of("")->groups(), expected);
}

TEST(S5, RefusesBlocksThatHoldNoPairs) {
  EXPECT_THROW(s5_of("states = 12\nblocks = 4"), Error);
  EXPECT_NO_THROW(s5_of("states = 12\nblocks = 3"));
  EXPECT_THROW(s5_of("dt_min = 0.5"), Error);
}

}  // namespace
}  // namespace lra::mixers
