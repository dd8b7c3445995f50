#include "mixers/every_mixer_test.h"

#include "base/parallel.h"
#include "ops/test_bf16.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr int64_t kBatch = 3;
constexpr uint64_t kKey = 0xC0FFEE;
// Below, at and above the blocks of 8 of the test settings, and odd.
constexpr int64_t kLengths[] = {1, 2, 7, 8, 9, 16, 17, 33};

Tensor input(int64_t length, int64_t dim = 6) {
  return 2 * ops::random_tensor({kBatch, length, dim}, static_cast<uint64_t>(length));
}

void expect_definition(const TestedMixer& mixer, int64_t length) {
  for (const Tensor& mask : {Tensor(), ragged_mask(length)}) {
    for (const double rate : {0.0, 0.3}) {
      SCOPED_TRACE(testing::Message() << "L " << length << " H " << mixer.shape.attention.heads
                                      << " mask " << mask.defined() << " dropout " << rate);
      const layers::Context context{mask, rate, kKey};
      ops::expect_agrees(mixer.function(context, at::kFloat), at::kFloat, mixer.oracle(context),
                         mixer.inputs(input(length)), {.value = 1e-5, .gradient = 1e-4});
    }
  }
}

TEST_P(EveryMixer, AgreesWithItsDefinition) {
  for (const int64_t length : kLengths) {
    expect_definition(tested(length, 1, 3), length);
    expect_definition(tested(length, 2, 5), length);
  }
}

TEST_P(EveryMixer, AgreesWithItsDefinitionAtLengthsOfManyTiles) {
  expect_definition(tested(301, 2, 8), 301);
}

TEST_P(EveryMixer, AgreesWithItsDefinitionBelowTheMaximumLength) {
  expect_definition(tested(40), 17);
}

// Numbers of few bits, so that projections are exact in bfloat16: for mixers that jump where
// rounding would move a token into another bucket.
std::vector<Tensor> coarse(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> list = {(2 * inputs[0]).round() / 2};
  for (size_t i = 1; i < inputs.size(); ++i) list.push_back((8 * inputs[i]).round() / 8);
  return list;
}

// Activations are rounded five to ten times on the way, at most 2^-9 and on average 2^-9.8 each;
// gradients again as often. RWKV-7's keys, of length one, are three numbers wide here, and what
// rounding turns them by stays in its state.
TEST_P(EveryMixer, AgreesWithItsDefinitionInBf16) {
  const bool is_hashed = GetParam()->name == "reformer";
  const double of_gradient = GetParam()->name == "rwkv7" ? 0x1p-3 : 0x1p-5;
  for (const int64_t length : {1, 9, 33, 301}) {
    for (const Tensor& mask : {Tensor(), ragged_mask(length)}) {
      for (const double rate : {0.0, 0.3}) {
        SCOPED_TRACE(testing::Message()
                     << "L " << length << " mask " << mask.defined() << " dropout " << rate);
        const layers::Context context{mask, rate, kKey};
        const TestedMixer mixer = tested(length, 2, 8);
        const auto inputs = mixer.inputs(input(length));
        ops::expect_agrees_in_bf16(mixer.function(context, at::kBFloat16), mixer.oracle(context),
                                   is_hashed ? coarse(inputs) : inputs, 1,
                                   {.value = 0x1p-6, .gradient = of_gradient});
      }
    }
  }
}

TEST_P(EveryMixer, GivesTheSameBitsTwiceInBf16) {
  const auto run = [&] {
    const auto mixer = tested(33).make(at::kFloat);
    const Tensor x = input(33).to(at::kBFloat16).set_requires_grad(true);
    const Tensor y = mixer->forward(x, {ragged_mask(33), 0.1, kKey});
    y.backward(ops::loss_weights(y));
    std::vector<Tensor> results = {y, x.grad()};
    for (const Tensor& p : mixer->parameters()) results.push_back(p.grad());
    return results;
  };
  const auto first = run(), second = run();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i], second[i])) << i;
}

TEST_P(EveryMixer, GradientIsTheSlope) {
  for (const Tensor& mask : {Tensor(), ragged_mask(17)}) {
    const layers::Context context{mask, 0.2, kKey};
    const TestedMixer mixer = tested(17);
    ops::expect_gradient_is_slope(mixer.function(context, at::kDouble), mixer.inputs(input(17)));
  }
}

TEST_P(EveryMixer, IgnoresPaddedTokens) {
  for (const int64_t length : kLengths) {
    const TestedMixer mixer = tested(length);
    const Tensor mask = ragged_mask(length), x = input(length);
    const Tensor changed = at::where(mask.to(at::kBool).unsqueeze(-1), x, 100 * x + 7);
    const auto f = mixer.function({mask, 0, kKey}, at::kFloat);
    const auto before = ops::differentiate(f, mixer.inputs(x), at::kFloat);
    const auto after = ops::differentiate(f, mixer.inputs(changed), at::kFloat);
    EXPECT_TRUE(at::equal(before.value, after.value)) << "L " << length;
    EXPECT_TRUE(at::equal(before.gradients[0], zero_padding(before.gradients[0], mask)));
    for (size_t i = 0; i < before.gradients.size(); ++i) {
      EXPECT_LE(ops::relative_error(after.gradients[i], before.gradients[i]), 1e-5) << i;
    }
  }
}

TEST_P(EveryMixer, GivesFiniteValuesAtPaddedPositions) {
  const auto mixer = tested(17).make(at::kFloat);
  const Tensor y = mixer->forward(input(17).to(at::kFloat), {ragged_mask(17), 0, kKey});
  EXPECT_TRUE(y.isfinite().all().item<bool>());
}

// Scores are then 1e16: a softmax gives all weight to one key, and nothing overflows. Not so
// Performer, which adds the squared length of k to w . k: float32 has no digit left for the
// product. Mamba multiplies five functions of its input, 1e40 here, Mamba-2 too, and RetNet, GLA,
// HGRN2, mLSTM and RWKV-7 square the product of three: the trainer names the step where that
// happens.
// Sinkhorn's oracle is NaN there, the mixer is not.
TEST_P(EveryMixer, KeepsItsDefinitionForInputsAHundredMillionTimesAsLarge) {
  if (GetParam()->name == "performer") GTEST_SKIP() << "has no digits left";
  for (const char* products : {"mamba", "mamba2", "retnet", "gla", "hgrn2", "mlstm", "rwkv7"}) {
    if (GetParam()->name == products) GTEST_SKIP() << "is beyond float32";
  }
  for (const int64_t length : {9, 33}) {
    const TestedMixer mixer = tested(length);
    const layers::Context context{ragged_mask(length), 0.3, kKey};
    const auto in = mixer.inputs((1e8 * input(length)).to(at::kFloat).to(at::kDouble));
    const auto found = ops::differentiate(mixer.function(context, at::kFloat), in, at::kFloat);
    EXPECT_TRUE(found.value.isfinite().all().item<bool>());
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_TRUE(found.gradients[i].isfinite().all().item<bool>()) << "gradient of input " << i;
    }
    if (GetParam()->name == "sinkhorn") continue;
    EXPECT_LE(ops::relative_error(found.value, mixer.oracle(context)(in)), 1e-5) << "L " << length;
  }
}

TEST_P(EveryMixer, IgnoresHowMuchPaddingFollows) {
  constexpr int64_t kExtra = 13;
  for (const int64_t length : kLengths) {
    const auto mixer = tested(length + kExtra).make(at::kFloat);
    const Tensor x = input(length).to(at::kFloat), mask = ragged_mask(length);
    const Tensor longer = at::cat({x, input(kExtra).to(at::kFloat)}, 1);
    const Tensor longer_mask = at::cat({mask, at::zeros({kBatch, kExtra}, at::kByte)}, 1);
    const Tensor expected = zero_padding(mixer->forward(x, {mask, 0, kKey}), mask);
    const Tensor actual = mixer->forward(longer, {longer_mask, 0, kKey}).narrow(1, 0, length);
    EXPECT_LE(ops::relative_error(zero_padding(actual, mask), expected), 1e-5) << "L " << length;
  }
}

TEST_P(EveryMixer, TakesAFullMaskAsNoMask) {
  const auto mixer = tested(17).make(at::kFloat);
  const Tensor x = input(17).to(at::kFloat), full = at::ones({kBatch, 17}, at::kByte);
  EXPECT_LE(
      ops::relative_error(mixer->forward(x, {full, 0, kKey}), mixer->forward(x, {{}, 0, kKey})),
      1e-6);
}

TEST_P(EveryMixer, TrainsEveryRowOfEveryParameter) {
  const auto mixer = tested(33).make(at::kFloat);
  if (mixer->parameters().empty()) GTEST_SKIP() << "has no parameters";
  const Tensor y = mixer->forward(input(33).to(at::kFloat), {{}, 0, kKey});
  (y * ops::loss_weights(y)).sum().backward();
  for (const auto& item : mixer->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    const Tensor rows = item.value().grad().flatten(item.value().dim() > 1 ? 1 : 0);
    EXPECT_TRUE(rows.ne(0).any(-1).all().item<bool>()) << item.key();
  }
}

TEST_P(EveryMixer, GivesTheSameBitsTwice) {
  const TestedMixer mixer = tested(33);
  const auto f = mixer.function({ragged_mask(33), 0.1, kKey}, at::kFloat);
  const auto first = ops::differentiate(f, mixer.inputs(input(33)), at::kFloat);
  const auto second = ops::differentiate(f, mixer.inputs(input(33)), at::kFloat);
  EXPECT_TRUE(at::equal(first.value, second.value));
  for (size_t i = 0; i < first.gradients.size(); ++i) {
    EXPECT_TRUE(at::equal(first.gradients[i], second.gradients[i])) << "input " << i;
  }
}

// Several numbers of threads and lengths: where a library call cuts its work may be the same by
// chance at one of them.
TEST_P(EveryMixer, GivesTheSameBitsAtAnyNumberOfThreads) {
  constexpr int64_t kDim = 48;
  const int before = num_threads();
  for (const int64_t length : {300, 301}) {
    const LayerShape shape{
        .model_dim = kDim, .attention = {.heads = 3, .head_dim = 16}, .max_length = length};
    const TestedMixer mixer{*GetParam(), conformance_, shape};
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const auto f = mixer.function({ragged_mask(length), 0.1, kKey}, type);
      const auto in_type = [&](std::vector<at::Tensor> leaves) {
        leaves[0] = leaves[0].to(type);
        return f(leaves);
      };
      const auto run = [&](int threads) {
        set_num_threads(threads);
        return ops::differentiate(in_type, mixer.inputs(input(length, kDim)), at::kFloat);
      };
      const auto one = run(1);
      for (const int threads : {2, 3, 4}) {
        const auto many = run(threads);
        const std::string at = toString(type) + std::string(" length ") + std::to_string(length) +
                               " threads " + std::to_string(threads);
        EXPECT_TRUE(at::equal(one.value, many.value)) << at;
        for (size_t i = 0; i < one.gradients.size(); ++i) {
          EXPECT_TRUE(at::equal(one.gradients[i], many.gradients[i])) << at << " input " << i;
        }
      }
    }
  }
  set_num_threads(before);
}

TEST_P(EveryMixer, DropsAttentionWeightsAsItsSpecSays) {
  const auto mixer = tested(17).make(at::kFloat);
  const Tensor x = input(17).to(at::kFloat);
  const auto run = [&](double rate, uint64_t key) { return mixer->forward(x, {{}, rate, key}); };
  EXPECT_EQ(at::equal(run(0.5, 1), run(0, 1)), !GetParam()->facts.attention_dropout);
  if (!GetParam()->facts.attention_dropout) return;
  EXPECT_FALSE(at::equal(run(0.5, 1), run(0.5, 2)));
  EXPECT_TRUE(at::equal(run(0, 1), run(0, 2)));
}

TEST_P(EveryMixer, CommutesWithThePermutationsOfItsDefinition) {
  if (conformance_.oracle == nullptr) GTEST_SKIP() << "no ConformanceRow says with which";
  constexpr int64_t kGroups = 41;  // more than any window or block sees
  const int64_t group = std::max<int64_t>(1, conformance_.interchangeable);
  const auto mixer = tested(kGroups * group).make(at::kFloat);
  const auto permuted = [&](const Tensor& x) {
    const Tensor order = (5 * at::arange(kGroups, at::kLong) + 3) % kGroups;
    return x.unflatten(1, {kGroups, group}).index_select(1, order).flatten(1, 2);
  };
  const Tensor x = input(kGroups * group).to(at::kFloat);
  const Tensor expected = permuted(mixer->forward(x, {{}, 0, kKey}));
  const double error = ops::relative_error(mixer->forward(permuted(x), {{}, 0, kKey}), expected);
  if (conformance_.interchangeable > 0) {
    EXPECT_LE(error, 1e-5);
  } else {
    EXPECT_GT(error, 1e-3) << "it does commute: say so in its ConformanceRow";
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryMixer, testing::ValuesIn(kAllMixers),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace lra::mixers
