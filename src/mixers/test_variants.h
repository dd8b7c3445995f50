// A mixer under other settings than those of its ConformanceRow, against its oracle.
#pragma once

#include "mixers/every_mixer_test.h"
#include "ops/test_bf16.h"

namespace lra::mixers {

// Values and gradients at several lengths, with and without padding and dropout, the slope, and
// that padding changes nothing; bfloat16 too, to `bf16`. `settings` is the TOML of
// [mixer].
inline void expect_variant_agrees(const LayerSpec& spec, Oracle oracle, const char* settings,
                                  const ops::NormwiseBounds& bf16 = {.value = 0x1p-6,
                                                                     .gradient = 0x1p-5}) {
  constexpr uint64_t kKey = 0xFACADE;
  const Conformance conformance{spec.name, oracle, settings, 0};
  for (const int64_t length : {1, 2, 9, 33}) {
    const TestedMixer mixer{spec,
                            conformance,
                            {.model_dim = 6,
                             .attention = {.heads = 2, .head_dim = 5},
                             .max_length = length + length / 3}};
    const at::Tensor x = 2 * ops::random_tensor({3, length, 6}, static_cast<uint64_t>(length));
    for (const at::Tensor& mask : {at::Tensor(), ragged_mask(length)}) {
      for (const double rate : {0.0, 0.3}) {
        SCOPED_TRACE(testing::Message() << settings << ", L " << length << " mask "
                                        << mask.defined() << " dropout " << rate);
        const layers::Context context{mask, rate, kKey};
        ops::expect_agrees(mixer.function(context, at::kFloat), at::kFloat, mixer.oracle(context),
                           mixer.inputs(x), {.value = 1e-5, .gradient = 1e-4});
        ops::expect_agrees_in_bf16(mixer.function(context, at::kBFloat16), mixer.oracle(context),
                                   mixer.inputs(x), 1, bf16);
        if (length != 9) continue;
        ops::expect_gradient_is_slope(mixer.function(context, at::kDouble), mixer.inputs(x));
      }
    }
    const at::Tensor mask = ragged_mask(length);
    const auto f = mixer.function({mask, 0, kKey}, at::kFloat);
    const at::Tensor changed = at::where(mask.to(at::kBool).unsqueeze(-1), x, 100 * x + 7);
    const auto before = ops::differentiate(f, mixer.inputs(x), at::kFloat);
    const auto after = ops::differentiate(f, mixer.inputs(changed), at::kFloat);
    EXPECT_TRUE(at::equal(before.value, after.value)) << settings << ", L " << length;
    EXPECT_TRUE(at::equal(before.gradients[0], zero_padding(before.gradients[0], mask)));
  }
}

}  // namespace lra::mixers
