#include "ops/scan/selective_scan.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

// [.., 2 N] of real and then imaginary parts, if there are both, as numbers [.., N].
Tensor numbers_of(const Tensor& t, bool are_complex) {
  if (!are_complex) return t;
  const auto parts = t.chunk(2, -1);
  return at::complex(parts[0].contiguous(), parts[1].contiguous());
}

// The scan by an L x L matrix of decays exp(a (S_t - S_j)) for each channel and state, S the sums
// of steps so far; in is x, dt, b, c, a, dt_bias, bias, skip, and perhaps frequency.
Tensor dense_scan(const std::vector<Tensor>& in, bool reversed, const Tensor& mask) {
  const int64_t length = in[0].size(1), width = in[0].size(2) / in[2].size(2);
  const Tensor valid =
      mask.defined() ? mask.to(at::kDouble).unsqueeze(2) : at::ones({1, length, 1}, at::kDouble);
  const Tensor x = in[0] * valid, dt = at::softplus(in[1] + in[5]) * valid;
  const auto of_channels = [&](const Tensor& t) {
    return t.repeat_interleave(width, 2) * valid.unsqueeze(3);
  };
  const bool are_complex = in.size() == 9;
  const Tensor b = numbers_of(of_channels(in[2]) + in[6].t(), are_complex);  // [B, L, D, N]
  const Tensor c = numbers_of(of_channels(in[3]), are_complex);
  const Tensor pole = are_complex ? at::complex(in[4], in[8]) : in[4];
  const Tensor sums = reversed ? dt.flip(1).cumsum(1).flip(1) : dt.cumsum(1);
  const Tensor between = sums.unsqueeze(2) - sums.unsqueeze(1);  // [B, t, j, D]
  const Tensor lag = at::arange(length).unsqueeze(1) - at::arange(length);
  const Tensor seen = (reversed ? lag.le(0) : lag.ge(0)).to(at::kDouble);
  const Tensor decay =
      (between.clamp_min(0).unsqueeze(4) * pole.t()).exp() * seen.view({1, length, length, 1, 1});
  const Tensor y = at::einsum("btdn,btjdn,bjdn,bjd->btd", {c, decay, b, (dt * x).to(c)});
  return ((are_complex ? at::real(y) : y) + in[7] * x) * valid;
}

TensorFunction scan_of(bool reversed, const Tensor& mask) {
  return [=](const std::vector<Tensor>& in) {
    return selective_scan({in[0], in[1], in[4], in[2], in[3], in[5], in[6], in[7], reversed, mask,
                           in.size() == 9 ? in[8] : Tensor()});
  };
}

std::vector<Tensor> scan_inputs(int64_t batch, int64_t length, int64_t channels, int64_t groups,
                                int64_t states, bool are_complex = false) {
  const int64_t numbers = are_complex ? 2 * states : states;
  std::vector<Tensor> in = {2 * random_tensor({batch, length, channels}, 1),
                            random_tensor({batch, length, channels}, 2),
                            random_tensor({batch, length, groups, numbers}, 4),
                            random_tensor({batch, length, groups, numbers}, 5),
                            -random_tensor({states, channels}, 3).abs(),
                            random_tensor({channels}, 6) - 1,
                            random_tensor({numbers, channels}, 7),
                            random_tensor({channels}, 8)};
  if (are_complex) in.push_back(3 * random_tensor({states, channels}, 9));
  return in;
}

TEST(SelectiveScan, IsItsRecurrenceWithItsGradients) {
  for (const int64_t length : {1, 9, 70}) {
    for (const bool reversed : {false, true}) {
      for (const Tensor& mask : {Tensor(), first_ones(length)}) {
        const bool are_complex = mask.defined() == reversed;
        SCOPED_TRACE(testing::Message() << "L " << length << " reversed " << reversed << " mask "
                                        << mask.defined() << " complex " << are_complex);
        const auto in = scan_inputs(3, length, 6, 2, 5, are_complex);
        const auto f = scan_of(reversed, mask);
        const TensorFunction oracle = [&](const auto& t) { return dense_scan(t, reversed, mask); };
        const double by = are_complex ? 4 : 1;  // a product of step and frequency is rounded
        expect_agrees(f, at::kFloat, oracle, in, {.value = by * 2e-6, .gradient = by * 1e-5});
        expect_agrees_in_bf16(f, oracle, in, 4, {.value = 0x1p-8, .gradient = 0x1p-7});
        if (length < 70) expect_gradient_is_slope(f, in);
      }
    }
  }
}

TEST(SelectiveScan, TakesNoBiasAndSkipForZero) {
  auto in = scan_inputs(2, 20, 4, 1, 3);
  in[6].zero_();
  in[7].zero_();
  EXPECT_TRUE(at::equal(selective_scan({in[0], in[1], in[4], in[2], in[3], in[5]}),
                        scan_of(false, {})(in)));
}

TEST(SelectiveScan, RefusesOtherShapesAndTypes) {
  const auto in = scan_inputs(3, 8, 6, 2, 5, true);
  const auto refused = [&](size_t which, const Tensor& t) {
    auto other = in;
    other[which] = t;
    EXPECT_THROW(scan_of(false, {})(other), CheckFailure) << which;
  };
  for (size_t i = 0; i < in.size(); ++i) {
    refused(i, in[i].narrow(-1, 0, in[i].size(-1) - 1));
    refused(i, in[i].to(at::kFloat));
  }
  refused(2, in[2].narrow(2, 0, 1));
  EXPECT_THROW(scan_of(false, at::ones({3, 7}, at::kByte))(in), CheckFailure);
}

TEST(SelectiveScan, GivesTheSameBitsAtAnyNumberOfThreads) {
  expect_same_bits_at_any_number_of_threads([] {
    const auto d =
        differentiate(scan_of(true, {}), scan_inputs(4, 150, 70, 2, 6, true), at::kFloat);
    std::vector<Tensor> all = d.gradients;
    all.push_back(d.value);
    return all;
  });
}

}  // namespace
}  // namespace lra::ops
