// ChordMixer against rotations spelt out position by position, and how far layers reach.
#include "io/toml.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor chordmixer(const OracleInput& in) {
  const auto layer = [&](const char* name, const Tensor& x) {
    return at::linear(x, in.parameters.at(std::string("mlp.") + name + ".weight"),
                      in.parameters.at(std::string("mlp.") + name + ".bias"));
  };
  const Tensor y = layer("fc2", at::gelu(layer("fc1", in.x_BLD), "tanh"));
  const int64_t dim = y.size(2);
  int64_t tracks = 1;
  for (int64_t reach = 1; reach < in.shape.max_length; reach *= 2) ++tracks;
  std::vector<Tensor> examples;
  for (int64_t b = 0; b < y.size(0); ++b) {
    const int64_t tokens = in.valid_BL[b].sum().item<int64_t>();
    std::vector<Tensor> rows;
    for (int64_t p = 0; p < y.size(1); ++p) {
      std::vector<Tensor> channels;
      for (int64_t c = 0, m = 0, in_track = 0; c < dim; ++c) {
        const int64_t offset = m == 0 ? 0 : int64_t{1} << (m - 1);
        channels.push_back(y[b][p < tokens ? (p + offset) % tokens : p][c]);
        if (++in_track == dim / tracks + (m < dim % tracks)) ++m, in_track = 0;
      }
      rows.push_back(at::stack(channels));
    }
    examples.push_back(at::stack(rows));
  }
  return at::stack(examples);
}

const ConformanceRow kChordMixerRow("chordmixer", chordmixer, "hidden = 7", 0);

TEST(ChordMixer, AgreesWithItsDefinitionAtTheWidthOfTheModel) {
  expect_variant_agrees(kChordMixer, chordmixer, "hidden = 0");
}

// Four layers for up to sixteen tokens: every token reaches every other one, in three not yet.
TEST(ChordMixer, ConnectsAllTokensInAsManyLayersAsItHasRotations) {
  constexpr int64_t kLength = 16;
  const LayerShape shape{.model_dim = 10, .max_length = kLength};
  for (const int64_t layers : {3, 4}) {
    Tensor x = ops::random_tensor({1, kLength, 10}, 1, at::kFloat).set_requires_grad(true);
    Tensor y = x;
    for (int64_t n = 0; n < layers; ++n) {
      const layers::Initializer init(static_cast<uint64_t>(n + 1));
      y = y + kChordMixer.make(init, {}, shape)->forward(y, {});
    }
    const Tensor reached = torch::autograd::grad({y.select(1, 0).sum()}, {x})[0].abs().amax(2)[0];
    EXPECT_EQ(reached.ne(0).all().item<bool>(), layers == 4);
  }
}

}  // namespace
}  // namespace lra::mixers
