#include "ops/long_convolution.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

Tensor ragged_rows(int64_t batch, int64_t length) {
  const Tensor lengths = (at::arange(batch, at::kLong) * 7 + 3).remainder(length + 1);
  return at::arange(length, at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1)).to(at::kByte);
}

TensorFunction convolved(const Tensor& mask, int64_t future) {
  return
      [=](const std::vector<Tensor>& in) { return long_convolution(in[0], mask, in[1], future); };
}

// y = sum over lags of a [L, L] matrix of places.
TensorFunction dense_convolution(const Tensor& mask, int64_t future) {
  return [=](const std::vector<Tensor>& in) {
    const int64_t length = in[0].size(1), width = in[1].size(1);
    const Tensor place = at::arange(length, at::kLong);
    const Tensor j = place.unsqueeze(1) - place.unsqueeze(0) + future;  // of t and s
    const Tensor is_lag = j.ge(0).logical_and(j.lt(width));
    const Tensor weights = at::where(
        is_lag, in[1].index_select(1, j.clamp(0, width - 1).flatten()).view({-1, length, length}),
        0);
    if (!mask.defined()) return at::einsum("bsd,dts->btd", {in[0], weights});
    const Tensor valid = mask.unsqueeze(2).to(at::kDouble);
    return at::einsum("bsd,dts->btd", {in[0] * valid, weights}) * valid;
  };
}

struct ConvolutionSizes {
  int64_t batch, length, channels, width, future;
};
// Direct and by transforms; kernels longer than the sequence; causal and two-sided; many examples.
constexpr ConvolutionSizes kConvolutions[] = {
    {2, 9, 5, 3, 1},     {3, 40, 17, 40, 0},      {2, 33, 6, 66, 33},
    {2, 600, 3, 600, 0}, {1, 301, 4, 602, 301},   {2, 520, 3, 700, 650},
    {1, 1, 4, 9, 4},     {3, 300, 2, 2000, 1000}, {700, 400, 2, 400, 0}};

std::vector<Tensor> convolution_inputs(const ConvolutionSizes& s) {
  return {random_tensor({s.batch, s.length, s.channels}, 1),
          random_tensor({s.channels, s.width}, 2)};
}

TEST(LongConvolution, AgreesWithItsDefinition) {
  for (const ConvolutionSizes& s : kConvolutions) {
    for (const Tensor& mask : {Tensor(), ragged_rows(s.batch, s.length)}) {
      SCOPED_TRACE(testing::Message() << "L " << s.length << " D " << s.channels << " K " << s.width
                                      << " future " << s.future << " mask " << mask.defined());
      const auto f = convolved(mask, s.future), want = dense_convolution(mask, s.future);
      expect_agrees(f, at::kFloat, want, convolution_inputs(s), {.value = 1e-5, .gradient = 1e-5});
      expect_agrees(f, at::kDouble, want, convolution_inputs(s),
                    {.value = 1e-12, .gradient = 1e-12});
      expect_agrees_in_bf16(f, want, convolution_inputs(s), 1,
                            {.value = 0x1p-7, .gradient = 0x1p-7});
    }
  }
}

// Transforms whose factors are not made with care lose three digits at lengths that are no power of
// two.
TEST(LongConvolution, IsAsExactAtAnyLength) {
  for (const int64_t length : {1000, 4096, 16'000, 16'384}) {
    const auto in = convolution_inputs({1, length, 2, 2 * length, length});
    const TensorFunction f = convolved({}, length);
    const auto exact = differentiate(f, in, at::kDouble), found = differentiate(f, in, at::kFloat);
    EXPECT_LE(relative_error(found.value, exact.value), 2e-6) << length;
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_LE(relative_error(found.gradients[i], exact.gradients[i]), 2e-6) << length;
    }
  }
}

TEST(LongConvolution, GradientIsTheSlope) {
  for (const ConvolutionSizes& s :
       {ConvolutionSizes{2, 9, 5, 7, 2}, ConvolutionSizes{2, 560, 2, 1120, 560}}) {
    expect_gradient_is_slope(convolved(ragged_rows(s.batch, s.length), s.future),
                             convolution_inputs(s));
  }
}

TEST(LongConvolution, PaddingChangesNothing) {
  for (const ConvolutionSizes& s : kConvolutions) {
    const Tensor mask = ragged_rows(s.batch, s.length), valid = mask.to(at::kBool).unsqueeze(2);
    auto in = convolution_inputs(s);
    const auto before = differentiate(convolved(mask, s.future), in, at::kFloat);
    in[0] = at::where(valid, in[0], 100 * in[0] + 7);
    const auto after = differentiate(convolved(mask, s.future), in, at::kFloat);
    EXPECT_TRUE(at::equal(before.value, after.value)) << s.length << " " << s.width;
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_TRUE(at::equal(before.gradients[i], after.gradients[i])) << s.length << " " << s.width;
    }
    EXPECT_TRUE(at::equal(before.gradients[0], at::where(valid, before.gradients[0], 0)));
  }
}

TEST(LongConvolution, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const ConvolutionSizes& s :
       {ConvolutionSizes{3, 301, 40, 20, 10}, ConvolutionSizes{3, 701, 40, 1400, 700},
        ConvolutionSizes{2, 4001, 3, 4001, 0}}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto in = convolution_inputs(s);
      const Tensor x = in[0].to(type).set_requires_grad(true),
                   kernel = in[1].to(at::kFloat).set_requires_grad(true);
      expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
        const Tensor y = long_convolution(x, ragged_rows(s.batch, s.length), kernel, s.future);
        const auto grads = torch::autograd::grad({y}, {x, kernel}, {loss_weights(y)});
        return {y.detach(), grads[0], grads[1]};
      });
    }
  }
}

TEST(LongConvolution, KeepsOnlyTheLagsThatASequenceCanUse) {
  const Tensor x = random_tensor({1, 500, 4}, 1);
  const Tensor kernel = random_tensor({4, 20'000}, 2).set_requires_grad(true) * 2;
  const Tensor y = long_convolution(x, {}, kernel, 10'000);
  EXPECT_EQ(kernel.storage().use_count(), 1u) << "nothing else holds on to the whole kernel";
  const Tensor of_kernel = torch::autograd::grad({y.sum()}, {kernel})[0];
  EXPECT_TRUE(of_kernel.narrow(1, 0, 9'501).eq(0).all().item<bool>()) << "lags before -499";
  EXPECT_TRUE(of_kernel.narrow(1, 9'501, 999).ne(0).all().item<bool>());
}

}  // namespace
}  // namespace lra::ops
