#include "ops/convolution_silu.h"

#include "ops/long_convolution.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

TensorFunction fused(const Tensor& mask, int64_t future) {
  return [=](const std::vector<Tensor>& in) {
    return convolution_silu(in[0], mask, in[1], in[2], future);
  };
}

// Position after position, lag after lag.
TensorFunction definition(const Tensor& mask, int64_t future) {
  return [=](const std::vector<Tensor>& in) {
    const int64_t length = in[0].size(1), width = in[1].size(1);
    const Tensor valid = mask.defined() ? mask.unsqueeze(2).to(at::kDouble)
                                        : at::ones({in[0].size(0), length, 1}, at::kDouble);
    const Tensor x = at::constant_pad_nd(in[0] * valid, {0, 0, width, width});
    Tensor sum = in[2].expand_as(in[0]);
    for (int64_t j = 0; j < width; ++j) {
      sum = sum + in[1].select(1, j) * x.narrow(1, width + future - j, length);
    }
    return at::silu(sum) * valid;
  };
}

struct ShortSizes {
  int64_t length, channels, width, future;
};
// Lengths around a task's; kernels longer than the sequence, one-way and two-sided; wide ones,
// which are composed.
constexpr ShortSizes kShort[] = {{1, 3, 4, 0},   {9, 5, 1, 0},    {17, 16, 4, 3}, {40, 33, 8, 2},
                                 {513, 7, 4, 0}, {1025, 4, 3, 1}, {30, 4, 12, 5}, {6, 4, 9, 8}};

std::vector<Tensor> short_inputs(const ShortSizes& s) {
  return {2 * random_tensor({3, s.length, s.channels}, 1), random_tensor({s.channels, s.width}, 2),
          random_tensor({s.channels}, 3)};
}

TEST(ConvolutionSilu, AgreesWithItsDefinition) {
  for (const ShortSizes& s : kShort) {
    const Tensor holes = at::arange(3 * s.length).remainder(5).ne(2).to(at::kByte).view({3, -1});
    for (const Tensor& mask : {Tensor(), first_ones(s.length), holes}) {
      SCOPED_TRACE(testing::Message() << "L " << s.length << " D " << s.channels << " K " << s.width
                                      << " future " << s.future << " mask " << mask.defined());
      const auto f = fused(mask, s.future), want = definition(mask, s.future);
      expect_agrees(f, at::kFloat, want, short_inputs(s), {.value = 2e-6, .gradient = 2e-5});
      expect_agrees(f, at::kDouble, want, short_inputs(s), {.value = 1e-12, .gradient = 1e-12});
      expect_agrees_in_bf16(f, want, short_inputs(s), 1, {.value = 0x1p-6, .gradient = 0x1p-5});
    }
  }
}

TEST(ConvolutionSilu, GradientIsTheSlope) {
  for (const ShortSizes& s : {ShortSizes{12, 5, 4, 1}, ShortSizes{12, 2, 10, 3}}) {
    expect_gradient_is_slope(fused(first_ones(12), s.future), short_inputs(s));
  }
}

TEST(ConvolutionSilu, TakesPartsOfRowsAndIgnoresPadding) {
  const auto in = short_inputs({20, 12, 4, 0});
  const Tensor mask = first_ones(20), valid = mask.to(at::kBool).unsqueeze(2);
  const auto f = fused(mask, 0);
  const auto part = [&](const std::vector<Tensor>& t) {
    return f({t[0].narrow(2, 3, 6), t[1].narrow(0, 3, 6), t[2].narrow(0, 3, 6)});
  };
  expect_agrees(part, at::kFloat,
                [&](const auto& t) { return definition(mask, 0)(t).narrow(2, 3, 6); }, in,
                {.value = 2e-6, .gradient = 2e-5});
  const Tensor spoilt = at::where(valid, in[0], std::numeric_limits<double>::quiet_NaN());
  const auto clean = differentiate(f, in, at::kFloat);
  const auto dirty = differentiate(f, {spoilt, in[1], in[2]}, at::kFloat);
  EXPECT_TRUE(at::equal(clean.value, dirty.value));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(clean.gradients[i], dirty.gradients[i]));
}

TEST(ConvolutionSilu, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto in = short_inputs({1300, 40, 4, 1});
    const Tensor x = in[0].to(type).set_requires_grad(true);
    const Tensor kernel = in[1].to(at::kFloat).set_requires_grad(true);
    const Tensor bias = in[2].to(at::kFloat).set_requires_grad(true);
    expect_same_bits_at_any_number_of_threads([&] {
      const Tensor y = convolution_silu(x, first_ones(1300), kernel, bias, 1);
      const auto grads = torch::autograd::grad({y}, {x, kernel, bias}, {loss_weights(y)});
      return std::vector<Tensor>{y.detach(), grads[0], grads[1], grads[2]};
    });
  }
}

}  // namespace
}  // namespace lra::ops
