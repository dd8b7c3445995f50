#include "ops/scan/diagonal_scan.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

// The L x L convolution matrices of both directions, [D, L, L]; in is x, a, c, skip.
Tensor dense_scan(const std::vector<Tensor>& in, const Tensor& mask) {
  const Tensor &x = in[0], &a = in[1], &c = in[2];
  const int64_t length = x.size(1);
  const auto complex = [](const Tensor& t) {
    return t.size(0) == 2 ? at::complex(t[0], t[1]) : at::complex(t[0], at::zeros_like(t[0]));
  };
  const Tensor valid =
      mask.defined() ? mask.to(at::kDouble) : at::ones({x.size(0), length}, at::kDouble);
  const Tensor lag = at::arange(length).unsqueeze(1) - at::arange(length);
  Tensor kernel = at::zeros({x.size(2), length, length}, at::kDouble);
  for (int64_t d = 0; d < c.size(0); ++d) {
    const Tensor exponent = (d == 0 ? lag : -lag - 1).clamp_min(0).to(at::kDouble);
    const Tensor powers = complex(a).unsqueeze(-1).unsqueeze(-1).pow(exponent);  // [N, D, L, L]
    const Tensor sum = at::real((complex(c[d]).unsqueeze(-1).unsqueeze(-1) * powers).sum(0));
    kernel = kernel + sum * (d == 0 ? lag.ge(0) : lag.lt(0)).to(at::kDouble);
  }
  const Tensor u = x * valid.unsqueeze(-1);
  return (at::einsum("dlm,bmd->bld", {kernel, u}) + in[3] * u) * valid.unsqueeze(-1);
}

TensorFunction scan_of(const Tensor& mask) {
  return [mask](const std::vector<Tensor>& in) {
    return diagonal_scan({in[0], in[1], in[2], in[3], mask});
  };
}

std::vector<Tensor> scan_inputs(int64_t length, int64_t modes, int64_t planes, int64_t directions) {
  constexpr int64_t kBatch = 3, kDim = 5;
  return {2 * random_tensor({kBatch, length, kDim}, 1),
          0.6 * random_tensor({planes, modes, kDim}, 2),
          random_tensor({directions, planes, modes, kDim}, 3), random_tensor({kDim}, 4)};
}

TEST(DiagonalScan, IsItsConvolutionWithItsGradients) {
  for (const int64_t length : {1, 9, 70}) {
    for (const int64_t planes : {1, 2}) {
      for (const int64_t directions : {1, 2}) {
        for (const Tensor& mask : {Tensor(), first_ones(length)}) {
          SCOPED_TRACE(testing::Message()
                       << "L " << length << " planes " << planes << " directions " << directions
                       << " mask " << mask.defined());
          const auto in = scan_inputs(length, 3, planes, directions);
          const TensorFunction oracle = [&](const auto& x) { return dense_scan(x, mask); };
          expect_agrees(scan_of(mask), at::kFloat, oracle, in, {.value = 2e-6, .gradient = 1e-5});
          expect_agrees_in_bf16(scan_of(mask), oracle, in, 1,
                                {.value = 0x1p-8, .gradient = 0x1p-7});
          if (length < 70) expect_gradient_is_slope(scan_of(mask), in);
        }
      }
    }
  }
}

TEST(DiagonalScan, TakesNoSkipForZero) {
  auto in = scan_inputs(20, 2, 2, 2);
  in[3].zero_();
  EXPECT_TRUE(at::equal(diagonal_scan({in[0], in[1], in[2]}), scan_of({})(in)));
}

TEST(DiagonalScan, RefusesOtherShapesAndTypes) {
  const auto in = scan_inputs(8, 2, 2, 2);
  const auto refused = [](const DiagonalScanInput& input) {
    EXPECT_THROW(diagonal_scan(input), CheckFailure);
  };
  refused({in[0], in[1].narrow(1, 0, 1), in[2], in[3]});
  refused({in[0], in[1].narrow(0, 0, 1), in[2], in[3]});
  refused({in[0].to(at::kFloat), in[1], in[2], in[3]});
  refused({in[0], in[1], in[2], in[3].narrow(0, 0, 4)});
  refused({in[0], in[1], in[2], in[3], at::ones({3, 7}, at::kByte)});
}

TEST(DiagonalScan, GivesTheSameBitsAtAnyNumberOfThreads) {
  std::vector<Tensor> in = {random_tensor({4, 150, 70}, 1), 0.6 * random_tensor({2, 5, 70}, 2),
                            random_tensor({2, 2, 5, 70}, 3), random_tensor({70}, 4)};
  expect_same_bits_at_any_number_of_threads([&] {
    const auto d = differentiate(scan_of({}), in, at::kFloat);
    std::vector<Tensor> all = d.gradients;
    all.push_back(d.value);
    return all;
  });
}

}  // namespace
}  // namespace lra::ops
