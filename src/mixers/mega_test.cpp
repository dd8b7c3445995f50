// The dense oracle of Mega: an L x L matrix for each channel's moving average, and all weights of
// attention.
#include <cmath>
#include <numbers>

#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// m before its SiLU, [B, L, D].
Tensor moving_average(const OracleInput& in) {
  const auto p = [&](const char* name) { return in.parameters.at(name); };
  const Tensor rate = p("ema_delta").sigmoid(), q = 1 - rate * p("ema_alpha").sigmoid();
  const Tensor c = rate * p("ema_beta") * p("ema_eta") / std::sqrt(static_cast<double>(q.size(1)));
  const Tensor u = in.x_BLD * in.valid_BL.unsqueeze(-1).to(at::kDouble);
  const int64_t length = u.size(1);
  const Tensor lag = at::arange(length).unsqueeze(1) - at::arange(length);
  Tensor y = p("ema_omega") * u;
  for (int64_t d = 0; d < q.size(0); ++d) {
    const Tensor steps = d == 0 ? lag : -lag;
    const Tensor powers = q[d].unsqueeze(-1).unsqueeze(-1).pow(steps.clamp_min(0));  // [h, D, L, L]
    const Tensor kernel = at::einsum("nd,ndij->dij", {c[d], powers}) * steps.ge(0).to(at::kDouble);
    y = y + at::einsum("dij,bjd->bid", {kernel, u});
  }
  return y;
}

// [B, L, L]
Tensor attention_weights(const OracleInput& in, const Tensor& q, const Tensor& k) {
  const ConfigTable settings = kMega.resolve(in.config);
  const int64_t length = q.size(1), set = std::get<int64_t>(settings.find("chunk")->value);
  const int64_t chunk = set == 0 ? in.shape.max_length : set;
  const Tensor place = at::arange(length), group = place.floor_divide(chunk);
  const Tensor seen = group.unsqueeze(1).eq(group) & in.valid_BL.unsqueeze(1);
  const Tensor lag = (place - place.unsqueeze(1)).clamp(1 - chunk, chunk - 1) + chunk - 1;
  const Tensor bias =
      in.parameters.at("position_bias").index_select(0, lag.flatten()).view({length, length});
  const Tensor products = at::einsum("biz,bjz->bij", {q, k});
  if (std::get<std::string>(settings.find("attention")->value) == "softmax") {
    const Tensor scores = products / std::sqrt(static_cast<double>(q.size(2))) + bias;
    const Tensor some = seen.any(-1, /*keepdim=*/true);
    return scores.masked_fill(seen.logical_not() & some, -INFINITY).softmax(-1) * seen;
  }
  const Tensor scores = products / seen.sum(-1, true).clamp_min(1) + bias;
  const double mean = std::sqrt(0.5), deviation = std::sqrt(0.25 / std::numbers::pi);
  return 0.5 * (1 + ((scores - mean) / (deviation * std::numbers::sqrt2)).erf()) * seen;
}

Tensor mega(const OracleInput& in) {
  const auto linear = [&](const std::string& name, const Tensor& x) {
    return at::linear(x, in.parameters.at(name + "_weight"), in.parameters.at(name + "_bias"));
  };
  const int64_t dim = in.x_BLD.size(2);
  const Tensor &scale = in.parameters.at("scale"), &shift = in.parameters.at("shift");
  const int64_t z = scale.size(1), v = in.parameters.at("value_bias").size(0);
  const auto base =
      linear("base", at::silu(moving_average(in))).split_with_sizes({dim, z, v, dim}, 2);
  const Tensor shared = at::silu(base[1]);
  const Tensor weights =
      attention_weights(in, shared * scale[0] + shift[0], shared * scale[1] + shift[1]);
  const Tensor attended = at::matmul(weights, at::silu(linear("value", in.x_BLD)));
  const Tensor h = at::silu(base[3] + linear("hidden", attended * at::silu(base[2])));
  return base[0].sigmoid() * (h - in.x_BLD);
}

const ConformanceRow kMegaRow{
    "mega", mega, "ema_dim = 3\nz_dim = 4\nv_dim = 7\nchunk = 8\nattention = 'laplace'", 0};

constexpr const char* kVariants[] = {
    "ema_dim = 2\nz_dim = 3\nv_dim = 5", "z_dim = 4\nv_dim = 3\nchunk = 8",
    "ema_dim = 1\nz_dim = 3\nv_dim = 4\nattention = 'laplace'",
    "ema_dim = 2\nz_dim = 4\nv_dim = 3\nchunk = 5\nattention = 'laplace'\nbidirectional = false"};

TEST(Mega, AgreesWithItsDefinitionInEveryVariant) {
  for (const char* settings : kVariants) expect_variant_agrees(kMega, mega, settings);
}

// The weights at first are so small that all scores are alike. Here those of attention are larger.
std::vector<Tensor> with_large_weights(const TestedMixer& mixer, std::vector<Tensor> inputs) {
  size_t i = 1;
  for (const auto& item : mixer.make(at::kDouble)->named_parameters()) {
    if (!item.key().starts_with("ema_")) inputs[i] = 25 * inputs[i];
    ++i;
  }
  return inputs;
}

TEST(Mega, AgreesWithItsDefinitionWhereScoresDiffer) {
  for (const char* settings : kVariants) {
    for (const int64_t length : {3, 17, 150}) {
      const Conformance conformance{kMega.name, mega, settings, 0};
      const TestedMixer mixer{
          kMega, conformance, {.model_dim = 6, .attention = {.heads = 1}, .max_length = 160}};
      const auto in =
          with_large_weights(mixer, mixer.inputs(2 * ops::random_tensor({3, length, 6}, 1)));
      for (const Tensor& mask : {Tensor(), ragged_mask(length)}) {
        SCOPED_TRACE(testing::Message() << settings << ", L " << length);
        const auto f = mixer.function({mask}, at::kFloat);
        ops::expect_agrees(f, at::kFloat, mixer.oracle({mask}), in);
        // Queries and keys matter: without them the values are others.
        std::vector<Tensor> alike = in;
        size_t i = 1;
        for (const auto& item : mixer.make(at::kDouble)->named_parameters()) {
          if (item.key() == "scale") alike[i] = at::zeros_like(alike[i]);
          ++i;
        }
        EXPECT_GT(ops::relative_error(mixer.oracle({mask})(alike), mixer.oracle({mask})(in)), 1e-4);
      }
    }
  }
}

// y = u (h - stream) with 0 < u < 1, and u and h without the stream; by default that is the input.
TEST(Mega, MovesTheStreamBehindANormTowardsItsOutput) {
  const auto layer = kMega.make(layers::Initializer(1), {},
                                {.model_dim = 6, .attention = {.heads = 1}, .max_length = 12});
  const at::NoGradGuard no_grad;
  const Tensor x = ops::random_tensor({2, 12, 6}, 1, at::kFloat);
  const auto moved = [&](double by) { return layer->forward(x, {.stream_BLD = x + by}); };
  EXPECT_TRUE(at::equal(moved(0), layer->forward(x, {})));
  const Tensor u = moved(0) - moved(1);
  EXPECT_TRUE(u.gt(0).logical_and(u.lt(1)).all().item<bool>());
  EXPECT_LE(ops::relative_error(moved(0) - moved(8), 8 * u), 1e-5);
}

TEST(Mega, SeesNothingBeyondItsChunk) {
  const auto layer =
      kMega.make(layers::Initializer(1), parse_toml("chunk = 4\nema_dim = 1", "model.toml"),
                 {.model_dim = 6, .attention = {.heads = 1}, .max_length = 12});
  // Without the moving average's memory only attention carries anything: q = 1 - sigmoid sigmoid is
  // made 0.
  const at::NoGradGuard no_grad;
  for (const char* name : {"ema_delta", "ema_alpha"}) layer->named_parameters()[name].fill_(100);
  const Tensor x = ops::random_tensor({1, 12, 6}, 1, at::kFloat);
  Tensor changed = x.clone();
  changed.narrow(1, 5, 1).add_(1);
  const Tensor difference =
      (layer->forward(changed, {}) - layer->forward(x, {})).abs().amax({0, 2});
  for (int64_t t = 0; t < 12; ++t) {
    EXPECT_EQ(difference[t].item<float>() > 0, t / 4 == 1) << t;
  }
}

}  // namespace
}  // namespace lra::mixers
