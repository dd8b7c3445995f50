// Long convolutions with free and with joined kernels, causal, two-sided and short.
#include "io/toml.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

const std::string& text(const OracleInput& in, const char* name) {
  return std::get<std::string>(in.config.find(name)->value);
}
double real(const OracleInput& in, const char* name) {
  return std::get<double>(in.config.find(name)->value);
}

// Number n of `count` numbers stretched over `lags` places, each number in the middle of its share:
// as a matrix [lags, count].
Tensor stretch(int64_t count, int64_t lags) {
  Tensor weights = at::zeros({lags, count}, at::kDouble);
  for (int64_t l = 0; l < lags; ++l) {
    const double place = std::max(0.0, (static_cast<double>(l) + 0.5) * static_cast<double>(count) /
                                               static_cast<double>(lags) -
                                           0.5);
    const auto below = static_cast<int64_t>(place), above = std::min(below + 1, count - 1);
    weights[l][below] += 1 - (place - static_cast<double>(below));
    weights[l][above] += place - static_cast<double>(below);
  }
  return weights;
}

// One direction of SGConv, [D, lags]; its parameters are [S, D, d].
Tensor direction(const OracleInput& in, const Tensor& scales) {
  const int64_t count = scales.size(0), dim = scales.size(1);
  std::vector<Tensor> joined;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t lags = scales.size(2) << std::max<int64_t>(0, i - 1);
    const Tensor decay =
        at::linspace(real(in, "decay_min"), real(in, "decay_max"), dim, at::kDouble);
    joined.push_back(at::einsum("dn,ln,d->dl", {scales[i], stretch(scales.size(2), lags),
                                                decay.pow(static_cast<double>(count - 1 - i))}));
  }
  return at::cat(joined, 1);
}

// The number at lag t - s for all t and s, [D, L, L]; `lag` gives [D] for each lag.
template <typename F>
Tensor toeplitz(int64_t length, const F& lag) {
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < length; ++t) {
    std::vector<Tensor> row;
    for (int64_t s = 0; s < length; ++s) row.push_back(lag(t - s));
    rows.push_back(at::stack(row, 1));
  }
  return at::stack(rows, 1);
}

Tensor long_conv(const OracleInput& in) {
  const int64_t length = in.x_BLD.size(1), dim = in.x_BLD.size(2);
  const Tensor &kernel = in.parameters.at("kernel"), none = at::zeros({dim}, at::kDouble);
  const bool two_sided = std::get<bool>(in.config.find("bidirectional")->value);
  Tensor weights;
  if (text(in, "kind") == "free") {
    const Tensor k = kernel.sign() * (kernel.abs() - real(in, "squash")).clamp_min(0);
    const int64_t future = two_sided ? k.size(1) / 2 : 0;
    weights = toeplitz(length, [&](int64_t lag) {
      const int64_t j = lag + future;
      return j >= 0 && j < k.size(1) ? k.select(1, j) : none;
    });
  } else {
    const int64_t all = (two_sided ? 2 : 1) * in.shape.max_length;
    const int64_t width = setting(in, "width") == 0 ? all : std::min(setting(in, "width"), all);
    const int64_t future = two_sided ? width / 2 : 0, past = width - future;
    const Tensor& sizes = in.parameters.at("length");
    std::vector<Tensor> k;
    for (int64_t d = 0; d < kernel.size(0); ++d) k.push_back(direction(in, kernel[d]) / sizes[d]);
    weights = toeplitz(length, [&](int64_t lag) {
      if (lag >= 0) return lag < past ? k[0].select(1, lag) : none;
      return -lag <= future ? k[1].select(1, -lag - 1) : none;
    });
  }
  const Tensor x = in.x_BLD * in.valid_BL.unsqueeze(2).to(at::kDouble);
  const Tensor y = at::einsum("dts,bsd->btd", {weights, x}) + in.parameters.at("skip") * x;
  const Tensor gates = at::linear(at::gelu(y, "tanh"), in.parameters.at("output.linear.weight"),
                                  in.parameters.at("output.linear.bias"));
  return gates.narrow(2, 0, dim) * gates.narrow(2, dim, dim).sigmoid();
}

const ConformanceRow kLongConvRow(
    "long_conv", long_conv,
    "kind = 'sgconv'\nscale_dim = 3\ndecay_min = 1.0\ndecay_max = 2.0\n"
    "bidirectional = true\nwidth = 0",
    0);

TEST(LongConv, AgreesWithItsDefinitionInEveryForm) {
  for (const char* settings : {"kind = 'free'\nsquash = 0.001\nbidirectional = true\nwidth = 0",
                               "kind = 'free'\nsquash = 0.0\nbidirectional = false\nwidth = 0",
                               "kind = 'free'\nsquash = 0.0\nbidirectional = true\nwidth = 5",
                               "kind = 'sgconv'\nscale_dim = 1\ndecay_min = 2.0\ndecay_max = 2.0\n"
                               "bidirectional = false\nwidth = 0",
                               "kind = 'sgconv'\nscale_dim = 4\ndecay_min = 1.0\ndecay_max = 3.0\n"
                               "bidirectional = true\nwidth = 7"}) {
    expect_variant_agrees(kLongConv, long_conv, settings);
  }
}

constexpr LayerShape kConvShape{.model_dim = 8, .max_length = 40};

std::shared_ptr<SequenceLayer> made(const char* settings) {
  return kLongConv.make(layers::Initializer(1), parse_toml(settings, "test"), kConvShape);
}

// A kernel of width 5 sees two tokens to each side.
TEST(LongConv, SeesNoFurtherThanItsWidth) {
  const auto layer = made("width = 5");
  const Tensor x = ops::random_tensor({1, 40, 8}, 1, at::kFloat);
  Tensor other = x.clone();
  other.select(1, 20).add_(1);
  const Tensor moved = (layer->forward(x, {}) - layer->forward(other, {})).abs().amax(2)[0];
  for (int64_t t = 0; t < 40; ++t) {
    EXPECT_EQ(moved[t].item<float>() > 0, std::abs(t - 20) <= 2) << t;
  }
}

TEST(LongConv, DropsNumbersOfItsKernelInTrainingAlone) {
  const auto layer = made("kernel_dropout = 0.5\nsquash = 0.0");
  const Tensor x = ops::random_tensor({2, 40, 8}, 1, at::kFloat);
  const auto run = [&](uint64_t step_key, bool training) {
    return layer->forward(x, {.step_key = step_key, .training = training});
  };
  EXPECT_FALSE(at::equal(run(1, true), run(2, true)));
  EXPECT_TRUE(at::equal(run(1, true), run(1, true)));
  EXPECT_TRUE(at::equal(run(1, false), run(2, false)));
}

TEST(LongConv, BeginsSgconvWithKernelsOfLengthOne) {
  const auto layer = made("kind = 'sgconv'\nscale_dim = 4\noutput = 'none'");
  const at::NoGradGuard no_grad;
  layer->named_parameters()["skip"].zero_();
  // The answer to one impulse in the middle is the kernel; GELU is undone by small numbers.
  Tensor x = at::zeros({1, 40, 8});
  x.select(1, 0).fill_(1e-3);
  const Tensor past = 2 * layer->forward(x, {})[0] / 1e-3;
  EXPECT_NEAR(past.square().sum(0).sqrt().mean().item<double>(), 1, 0.05);
}

}  // namespace
}  // namespace lra::mixers
