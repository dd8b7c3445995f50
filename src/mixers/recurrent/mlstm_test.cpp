// The oracle of mLSTM: its definition without the stabilizer, one position after another.
#include "base/error.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor blocks_applied(const Tensor& x, const Tensor& w_GRW) {
  return at::einsum("blgp,grp->blgr", {x.unflatten(2, {w_GRW.size(0), -1}), w_GRW}).flatten(2);
}

// A convolution whose second half of the channels looks at later tokens, if there are two
// directions.
Tensor convolved(const OracleInput& in, const Tensor& x, int64_t directions) {
  std::vector<Tensor> all;
  const auto share = [&](const Tensor& t, int64_t axis, int64_t d) {
    return t.chunk(directions, axis)[static_cast<size_t>(d)];
  };
  for (int64_t d = 0; d < directions; ++d) {
    const Tensor valid = turned(in.valid_BL, d).unsqueeze(2).to(at::kDouble);
    const Tensor y = convolution_oracle(turned(share(x, 2, d), d), valid,
                                        share(in.parameters.at("conv_weight"), 0, d),
                                        share(in.parameters.at("conv_bias"), 0, d));
    all.push_back(turned(y, d));
  }
  return at::silu(at::cat(all, 2));
}

Tensor mlstm(const OracleInput& in) {
  const ConfigTable config = kMLstm.resolve(in.config);
  const int64_t directions = std::get<bool>(config.find("bidirectional")->value) ? 2 : 1;
  const int64_t heads = std::get<int64_t>(config.find("num_heads")->value);
  const auto of = [&](const char* name) { return in.parameters.at(name); };
  const auto up = at::linear(in.x_BLD, of("up_weight")).chunk(2, 2);
  const Tensor c = convolved(in, up[0], directions);
  const Tensor q = blocks_applied(c, of("qkv_weight")[0]),
               k = blocks_applied(c, of("qkv_weight")[1]),
               v = blocks_applied(up[0], of("qkv_weight")[2]);
  const auto gates =
      at::linear(at::cat({q, k, v}, 2), of("gate_weight"), of("gate_bias")).chunk(2, 2);
  const double width = static_cast<double>(q.size(2) / heads);
  std::vector<Tensor> all;
  for (int64_t d = 0; d < directions; ++d) {
    const auto own = [&](const Tensor& t) {
      return turned(t.unflatten(2, {heads, -1}).chunk(directions, 2)[static_cast<size_t>(d)], d);
    };
    const Tensor key = own(k) * own(gates[0]).exp() / std::sqrt(width),
                 decay = own(gates[1]).sigmoid();
    const Tensor valid = turned(in.valid_BL, d);
    const auto state = [&](const Tensor& value) {
      return matrix_states_oracle(own(q), key, value, decay, {}, valid);
    };
    const Tensor h =
        state(own(v)) / state(at::ones_like(own(v)).narrow(3, 0, 1)).abs().clamp_min(1);
    const Tensor centered = h - h.mean(-1, true);
    const Tensor weight =
        of("norm_weight").view({heads, -1}).chunk(directions)[static_cast<size_t>(d)];
    all.push_back(turned(rms_norm_oracle(centered, weight).flatten(2), d));
  }
  return at::linear((at::cat(all, 2) + of("skip") * c) * at::silu(up[1]), of("down_weight"));
}

const ConformanceRow kMLstmRow{"mlstm", mlstm, "num_heads = 2\nblock = 4\nconv_width = 3", 0};

TEST(MLstm, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings : {"num_heads = 3\nblock = 4\nbidirectional = false\nforget_min = -2.0",
                               "num_heads = 2\nexpand = 1\nblock = 6\nconv_width = 1",
                               "num_heads = 6\nblock = 1\nforget_min = 0.0\nforget_max = 1.0"}) {
    expect_variant_agrees(kMLstm, mlstm, settings, {.value = 0x1p-5, .gradient = 0x1p-2});
  }
}

std::shared_ptr<SequenceLayer> mlstm_of(const std::string& settings) {
  return kMLstm.make(layers::Initializer(1), parse_toml(settings, "model.toml"),
                     {.model_dim = 128, .attention = {.heads = 1, .head_dim = 4}, .max_length = 8});
}

// 6 D^2 + (38 + 12 H) D + 2 H
TEST(MLstm, HasThePublishedNumberOfParameters) {
  const auto layer = mlstm_of("");
  int64_t numbers = 0;
  for (const Tensor& t : layer->parameters()) numbers += t.numel();
  EXPECT_EQ(numbers, 6 * 128 * 128 + (38 + 12 * 4) * 128 + 2 * 4);
  const Tensor bias = layer->named_parameters()["gate_bias"].narrow(0, 4, 4);
  EXPECT_TRUE(at::equal(bias, at::tensor({3.f, 6.f, 3.f, 6.f}))) << "of two directions";
}

// Input gates of exp(200) and exp(-200): float32 holds neither, the ratio of two states it does.
TEST(MLstm, TakesInputGatesOfAnySize) {
  const at::NoGradGuard no_grad;
  const auto layer = mlstm_of("bidirectional = false");
  const Tensor x = ops::random_tensor({1, 30, 128}, 3, at::kFloat);
  const auto with_bias = [&](double bias) {
    layer->named_parameters()["gate_bias"].narrow(0, 0, 4).fill_(bias);
    return layer->forward(x, {});
  };
  const Tensor large = with_bias(200);
  EXPECT_TRUE(large.isfinite().all().item<bool>());
  EXPECT_TRUE(at::allclose(large, with_bias(30), 1e-3, 1e-5)) << "far above the bound of 1";
  EXPECT_TRUE(with_bias(-200).isfinite().all().item<bool>());
}

TEST(MLstm, RefusesSizesThatDoNotFit) {
  EXPECT_THROW(mlstm_of("num_heads = 3\nbidirectional = false"), Error);
  EXPECT_THROW(mlstm_of("num_heads = 1"), Error);
  EXPECT_THROW(mlstm_of("block = 3"), Error);
}

}  // namespace
}  // namespace lra::mixers
