#include "ops/scan/gated_scan.h"

#include "ops/dispatch.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

// h_i = sum_j (product of a over j < t <= i) v_j by L x L arrays, in the order of time; in is a, v.
Tensor dense_states_of_channels(const std::vector<Tensor>& in, const Tensor& mask) {
  const int64_t length = in[0].size(1);
  const Tensor valid =
      mask.defined() ? mask.to(at::kDouble).unsqueeze(2) : at::ones({1, length, 1}, at::kDouble);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < length; ++i) {
    Tensor sum = at::zeros_like(in[1].select(1, 0)), product = at::ones_like(sum);
    for (int64_t j = i; j >= 0; --j) {
      sum = sum + product * (in[1] * valid).select(1, j);
      product = product * in[0].select(1, j);
    }
    rows.push_back(sum);
  }
  return at::stack(rows, 1) * valid;
}

// The same where the last `reversed` channels run from the end of each example.
Tensor dense_gated_scan(const std::vector<Tensor>& in, int64_t reversed, const Tensor& mask) {
  const int64_t forward = in[0].size(2) - reversed;
  const auto part = [&](int64_t from, int64_t count, bool turn) {
    std::vector<Tensor> channels;
    for (const Tensor& t : in) {
      const Tensor narrow = t.narrow(2, from, count);
      channels.push_back(turn ? narrow.flip(1) : narrow);
    }
    const Tensor valid = mask.defined() && turn ? mask.flip(1) : mask;
    const Tensor h = dense_states_of_channels(channels, valid);
    return turn ? h.flip(1) : h;
  };
  return at::cat({part(0, forward, false), part(forward, reversed, true)}, 2);
}

TensorFunction gated_scan_of(int64_t reversed, const Tensor& mask) {
  return [=](const std::vector<Tensor>& in) { return gated_scan(in[0], in[1], reversed, mask); };
}

std::vector<Tensor> gated_inputs(int64_t length, int64_t channels) {
  return {random_tensor({3, length, channels}, 1).abs(), random_tensor({3, length, channels}, 2)};
}

TEST(GatedScan, IsItsRecurrenceWithItsGradients) {
  for (const int64_t length : {1, 9, 40}) {
    for (const int64_t reversed : {0, 2, 5}) {
      for (const Tensor& mask : {Tensor(), first_ones(length)}) {
        SCOPED_TRACE(testing::Message()
                     << "L " << length << " reversed " << reversed << " mask " << mask.defined());
        const auto in = gated_inputs(length, 5);
        const auto f = gated_scan_of(reversed, mask);
        const TensorFunction oracle = [&](const auto& x) {
          return dense_gated_scan(x, reversed, mask);
        };
        expect_agrees(f, at::kFloat, oracle, in, {.value = 1e-6, .gradient = 1e-6});
        expect_gradient_is_slope(f, in);
        // v in bfloat16, a in float32.
        const TensorFunction other_order = [&](const auto& x) { return f({x[1], x[0]}); };
        const TensorFunction its_oracle = [&](const auto& x) { return oracle({x[1], x[0]}); };
        expect_agrees_in_bf16(other_order, its_oracle, {in[1], in[0]}, 1,
                              {.value = 0x1p-8, .gradient = 0x1p-7});
      }
    }
  }
}

// The composed passes, which other devices than the CPU run.
TEST(GatedScan, IsItsComposedVersion) {
  for (const int64_t length : {1, 9}) {
    for (const Tensor& mask : {Tensor(), first_ones(length)}) {
      const auto in = gated_inputs(length, 5);
      const auto got = differentiate(gated_scan_of(2, mask), in, at::kDouble);
      const auto maybe_mask = optional_tensor(mask);
      EXPECT_LE(relative_error(composed_gated_scan(in[0], in[1], 2, maybe_mask), got.value), 1e-14);
      const auto [of_a, of_v] = composed_gated_scan_backward(loss_weights(got.value), in[0],
                                                             got.value.detach(), 2, maybe_mask);
      EXPECT_LE(relative_error(of_a, got.gradients[0]), 1e-14);
      EXPECT_LE(relative_error(of_v, got.gradients[1]), 1e-14);
    }
  }
}

// In logarithms float32 has an error of 2e-3 here.
TEST(GatedScan, KeepsItsDigitsOverALongMemory) {
  const Tensor a = 1 - 1e-4 * random_tensor({1, 16384, 3}, 1).abs();
  const Tensor v = random_tensor({1, 16384, 3}, 2);
  const Tensor exact =
      gated_scan(a.to(at::kFloat).to(at::kDouble), v.to(at::kFloat).to(at::kDouble));
  EXPECT_LE(relative_error(gated_scan(a.to(at::kFloat), v.to(at::kFloat)), exact), 5e-6);
}

TEST(GatedScan, NeverReadsPadding) {
  const auto in = gated_inputs(9, 5);
  const Tensor mask = first_ones(9), spoiled = mask.unsqueeze(2).eq(0);
  const auto clean = differentiate(gated_scan_of(2, mask), in, at::kFloat);
  const auto dirty =
      differentiate(gated_scan_of(2, mask),
                    {in[0].masked_fill(spoiled, NAN), in[1].masked_fill(spoiled, NAN)}, at::kFloat);
  EXPECT_TRUE(at::equal(clean.value, dirty.value));
  EXPECT_TRUE(at::equal(clean.gradients[0], dirty.gradients[0]));
  EXPECT_TRUE(at::equal(clean.gradients[1], dirty.gradients[1]));
}

TEST(GatedScan, RefusesOtherShapesAndTypes) {
  const auto in = gated_inputs(9, 5);
  EXPECT_THROW(gated_scan(in[0].narrow(1, 0, 8), in[1]), CheckFailure);
  EXPECT_THROW(gated_scan(in[0].to(at::kFloat), in[1]), CheckFailure);
  EXPECT_THROW(gated_scan(in[0], in[1], 6), CheckFailure);
  EXPECT_THROW(gated_scan(in[0], in[1], 0, at::ones({3, 8}, at::kByte)), CheckFailure);
}

TEST(GatedScan, GivesTheSameBitsAtAnyNumberOfThreads) {
  expect_same_bits_at_any_number_of_threads([] {
    const auto d = differentiate(gated_scan_of(150, {}), gated_inputs(50, 300), at::kFloat);
    return std::vector<Tensor>{d.value, d.gradients[0], d.gradients[1]};
  });
}

}  // namespace
}  // namespace lra::ops
