// The Transformer with rotary encodings, and that its products depend on distances alone.
#include "io/toml.h"
#include "mixers/test_oracles.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// Channels 2c and 2c + 1 as one complex number, times exp(i p w_c).
Tensor turned(const Tensor& x_BLHE) {
  const int64_t length = x_BLHE.size(1), half = x_BLHE.size(3) / 2;
  const Tensor frequency = at::pow(10000.0, -at::arange(half, at::kDouble) / half);
  const Tensor angle = at::outer(at::arange(length, at::kDouble), frequency).unsqueeze(1);
  const Tensor complex = at::view_as_complex(x_BLHE.reshape({x_BLHE.size(0), length, -1, half, 2}));
  return at::view_as_real(complex * at::polar(at::ones_like(angle), angle)).flatten(3);
}

Tensor rotary_oracle(const OracleInput& in) {
  const int64_t length = in.x_BLD.size(1);
  const Tensor allowed = ops::masks_allow(at::ones({1, 1, length, length}, at::kBool),
                                          {.keys = in.valid_BL, .queries = in.valid_BL});
  return merge_heads(in, ops::dense_attention(turned(heads_of(in, "qkv.weight", 0)),
                                              turned(heads_of(in, "qkv.weight", 1)),
                                              heads_of(in, "qkv.weight", 2), allowed, in.dropout));
}

TEST(Transformer, TurnsQueriesAndKeysByTheirPosition) {
  const Conformance conformance{"transformer", rotary_oracle, "rotary = true", 0};
  const TestedMixer mixer{
      kTransformer,
      conformance,
      {.model_dim = 6, .attention = {.heads = 2, .head_dim = 4}, .max_length = 33}};
  const Tensor x = 2 * ops::random_tensor({3, 33, 6}, 3);
  for (const Tensor& mask : {Tensor(), ragged_mask(33)}) {
    const layers::Context context{.mask_BL = mask, .attention_dropout = 0.3, .key = 5};
    ops::expect_agrees(mixer.function(context, at::kFloat), at::kFloat, mixer.oracle(context),
                       mixer.inputs(x), {.value = 1e-5, .gradient = 1e-4});
  }
}

TEST(Transformer, RefusesToTurnHeadsOfOddWidth) {
  const LayerShape shape{.model_dim = 6, .attention = {.heads = 2, .head_dim = 5}, .max_length = 9};
  EXPECT_THROW(
      kTransformer.make(layers::Initializer(1), parse_toml("rotary = true", "test"), shape), Error);
}

}  // namespace
}  // namespace lra::mixers
