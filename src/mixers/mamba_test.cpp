// The oracle of Mamba: its definition, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// The tokens in the order of time, one after another.
Tensor scanned(const OracleInput& in, const Tensor& x, const Tensor& valid, int64_t direction) {
  const auto weight = [&](const char* name) { return in.parameters.at(name)[direction]; };
  const Tensor kernel = weight("conv_weight"), rate = -weight("a_log").exp();
  const int64_t length = x.size(1), taps = kernel.size(1), states = rate.size(1);
  Tensor local = weight("conv_bias").expand_as(x);
  for (int64_t j = 0; j < std::min(taps, length); ++j) {
    const Tensor before = (x * valid).narrow(1, 0, length - j);
    local = local + at::constant_pad_nd(before, {0, 0, j, 0}) * kernel.select(1, j);
  }
  const Tensor u = at::silu(local) * valid;
  const Tensor by_block = u.unflatten(2, {weight("select_weight").size(0), -1});
  const Tensor selected = at::einsum("btjp,jrp->btjr", {by_block, weight("select_weight")});
  const int64_t rank = selected.size(3) - 2 * states, width = by_block.size(3);
  const Tensor steps =
      at::einsum("btjr,jpr->btjp",
                 {selected.narrow(3, 0, rank), weight("step_weight").unflatten(0, {-1, width})});
  const Tensor dt = (at::softplus(steps.flatten(2) + weight("step_bias")) * valid).unsqueeze(3);
  Tensor b = selected.narrow(3, rank, states).repeat_interleave(width, 2);
  if (in.parameters.contains("b_bias")) b = b + weight("b_bias");
  const Tensor c = selected.narrow(3, rank + states, states).repeat_interleave(width, 2);
  const Tensor decay = (dt * rate).exp(), input = dt * b * u.unsqueeze(3);
  Tensor h = at::zeros({1}, at::kDouble);
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < length; ++t) {
    h = decay.select(1, t) * h + input.select(1, t);
    rows.push_back((c.select(1, t) * h).sum(2));
  }
  return at::stack(rows, 1) + weight("skip") * u;
}

Tensor mamba(const OracleInput& in) {
  const Tensor both = at::linear(in.x_BLD, in.parameters.at("in_weight"));
  const Tensor x = both.chunk(2, 2)[0], z = both.chunk(2, 2)[1];
  const Tensor valid = in.valid_BL.unsqueeze(2).to(at::kDouble);
  Tensor y = scanned(in, x, valid, 0);
  if (in.parameters.at("skip").size(0) == 2) {
    y = y + scanned(in, x.flip(1), valid.flip(1), 1).flip(1);
  }
  return at::linear(y * at::silu(z), in.parameters.at("out_weight"));
}

const ConformanceRow kMambaRow{"mamba", mamba, "states = 3\nconv_width = 3", 0};

TEST(Mamba, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings :
       {"states = 5\nbidirectional = false", "states = 1\nexpand = 1\nconv_width = 1\ndt_rank = 3",
        "states = 2\nblocks = 3\nchannel_bias = true"}) {
    expect_variant_agrees(kMamba, mamba, settings, {.value = 0x1p-5, .gradient = 0x1p-4});
  }
}

std::shared_ptr<SequenceLayer> mamba_of(const std::string& settings) {
  return kMamba.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                     {.model_dim = 40, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

TEST(Mamba, StartsWithItsStepsAndRates) {
  const auto layer = mamba_of("states = 3\ndt_min = 0.01\ndt_max = 0.2");
  const auto parameters = layer->named_parameters();
  const Tensor dt = at::softplus(parameters["step_bias"].detach().to(at::kDouble));
  EXPECT_GE(dt.min().item<double>(), 0.01 * (1 - 1e-4));
  EXPECT_LE(dt.max().item<double>(), 0.2 * (1 + 1e-4));
  EXPECT_LT(dt.min().item<double>(), 0.03);
  EXPECT_GT(dt.max().item<double>(), 0.1);
  const Tensor rates = parameters["a_log"].detach().exp();
  EXPECT_TRUE(at::allclose(rates, at::tensor({1.0f, 2.0f, 3.0f}).expand_as(rates)));
  EXPECT_EQ(parameters["step_weight"].size(2), 3);  // ceil(40 / 16)
}

TEST(Mamba, RefusesBlocksThatDoNotFit) {
  EXPECT_THROW(mamba_of("blocks = 3"), Error);
  EXPECT_THROW(mamba_of("dt_min = 0.2\ndt_max = 0.1"), Error);
}

}  // namespace
}  // namespace lra::mixers
