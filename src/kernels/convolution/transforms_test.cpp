#include "kernels/convolution/transforms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "kernels/convolution/convolution_test_case.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
void run_by_transforms(ConvolutionCase<T>& c) {
  convolve_by_transforms(c.problem());
  convolution_gradients_by_transforms(c.problem(), c.grad.data(), c.grad_x.data(),
                                      c.grad_kernel.data());
}

template <typename T>
void run_directly(ConvolutionCase<T>& c) {
  convolve(c.problem());
  convolution_kernel_gradient(c.problem(), c.grad.data(), c.grad_kernel.data());
  std::vector<Wide<T>> reversed;
  for (int64_t j = c.sizes.width - 1; j >= 0; --j) {
    const auto row = c.kernel.begin() + j * c.sizes.channels;
    reversed.insert(reversed.end(), row, row + c.sizes.channels);
  }
  auto back = c.problem();
  back.x = c.grad.data();
  back.kernel = reversed.data();
  back.future = c.sizes.width - 1 - c.sizes.future;
  back.y = c.grad_x.data();
  convolve(back);
}

double norm(const auto& values) {
  double sum = 0;
  for (const auto value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

// The direct sums of the same numbers.
template <typename T>
ConvolutionCase<double> directly_in_double(const ConvolutionCase<T>& c) {
  ConvolutionCase<double> wide(c.sizes);
  const auto widen = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
  widen(wide.x, c.x);
  widen(wide.grad, c.grad);
  widen(wide.kernel, c.kernel);
  wide.valid = c.valid;
  run_directly(wide);
  return wide;
}

template <typename T>
void expect_direct_sums(ConvolutionCase<T> got) {
  run_by_transforms(got);
  const auto want = directly_in_double(got);
  // Mean norms per example and channel.
  const auto share = static_cast<double>(got.sizes.batch * got.sizes.channels);
  const auto channels = static_cast<double>(got.sizes.channels);
  const double unit = std::is_same_v<T, double> ? 1e-15 : 4e-7;
  const double narrow = std::is_same_v<T, Bf16> ? 0x1p-8 : 0;
  const double of_y = unit * norm(want.x) * norm(want.kernel) / std::sqrt(share * channels);
  const double of_kernel = unit * norm(want.x) * norm(want.grad) / channels;
  for (size_t i = 0; i < want.y.size(); ++i) {
    ASSERT_NEAR(double{got.y[i]}, want.y[i], of_y + narrow * std::abs(want.y[i])) << i;
    ASSERT_NEAR(double{got.grad_x[i]}, want.grad_x[i], of_y + narrow * std::abs(want.grad_x[i]))
        << i;
  }
  for (size_t i = 0; i < want.grad_kernel.size(); ++i) {
    ASSERT_NEAR(got.grad_kernel[i], want.grad_kernel[i], of_kernel) << i;
  }
}

// Circles of 4, of powers of two, of three times one; one half of a row and a part of the other;
// more examples than a task has.
constexpr ConvolutionSizes kTransformSizes[] = {
    {1, 1, 1, 1, 0, false},     {1, 3, 1, 3, 0, false},       {9, 7, 64, 1, 0, true},
    {2, 6, 3, 10, 2, false},    {2, 3, 16, 3, 1, false},      {1, 5, 17, 6, 5, true},
    {3, 33, 33, 33, 0, true},   {2, 97, 48, 193, 96, true},   {1, 100, 32, 70, 69, false},
    {19, 12, 5, 23, 11, false}, {1, 300, 40, 1000, 400, true}};

using Transforms = ImplementationTest;

TEST_P(Transforms, AgreeWithDirectSums) {
  for (const auto& s : kTransformSizes) {
    SCOPED_TRACE(testing::Message() << "L " << s.length << " D " << s.channels << " K " << s.width);
    expect_direct_sums(ConvolutionCase<float>(s));
    expect_direct_sums(ConvolutionCase<Bf16>(s));
  }
}

// The norm of a channel over `rows` rows of [..., channels].
double norm_of_channel(const auto& values, const ConvolutionSizes& s, int64_t channel,
                       int64_t first_row, int64_t rows) {
  double sum = 0;
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    const auto value = double{values[static_cast<size_t>(row * s.channels + channel)]};
    sum += value * value;
  }
  return std::sqrt(sum);
}

// Channels that share a transform are of sizes from 1 to 1e-9 in each array: others for x, kernel
// and gradient, and for each example.
template <typename T>
ConvolutionCase<T> case_of_unlike_channels(const ConvolutionSizes& s) {
  ConvolutionCase<T> c(s);
  const auto scale = [&](auto& values, int64_t rows, int64_t shift) {
    for (size_t n = 0; n < values.size(); ++n) {
      const auto row = static_cast<int64_t>(n) / s.channels,
                 channel = static_cast<int64_t>(n) % s.channels;
      const int64_t exponent = (channel + channel / 16 * 3 + shift + row / rows) % 4;
      values[n] = static_cast<float>(values[n]) * static_cast<float>(std::pow(1e-3, exponent));
    }
  };
  scale(c.x, s.length, 0);
  scale(c.kernel, s.width, 1);
  scale(c.grad, s.length, 3);
  return c;
}

// The largest error of each channel, as a share of the norms of its own numbers.
template <typename T>
double largest_share(const ConvolutionSizes& s) {
  auto got = case_of_unlike_channels<T>(s);
  run_by_transforms(got);
  const auto want = directly_in_double(got);
  double largest = 0;
  for (int64_t c = 0; c < s.channels; ++c) {
    const double of_kernel = norm_of_channel(want.kernel, s, c, 0, s.width);
    double of_both = 0;  // gradients of the kernel are sums over examples
    for (int64_t b = 0; b < s.batch; ++b) {
      const double of_x = norm_of_channel(want.x, s, c, b * s.length, s.length);
      const double of_grad = norm_of_channel(want.grad, s, c, b * s.length, s.length);
      of_both += of_x * of_grad;
      for (int64_t t = b * s.length; t < (b + 1) * s.length; ++t) {
        const auto i = static_cast<size_t>(t * s.channels + c);
        const double y = std::abs(got.y[i] - want.y[i]) / (of_x * of_kernel);
        const double grad_x = std::abs(got.grad_x[i] - want.grad_x[i]) / (of_grad * of_kernel);
        largest = std::max({largest, y, grad_x});
      }
    }
    for (int64_t j = 0; j < s.width; ++j) {
      const auto i = static_cast<size_t>(j * s.channels + c);
      largest = std::max(largest, std::abs(got.grad_kernel[i] - want.grad_kernel[i]) / of_both);
    }
  }
  return largest;
}

TEST_P(Transforms, KeepEachChannelsPrecisionBesideALargerOne) {
  for (const auto& s : kTransformSizes) {
    EXPECT_LT(largest_share<float>(s), 4e-7) << s.length << " x " << s.channels;
  }
}

TEST(TransformsRef, KeepEachChannelsPrecisionBesideALargerOneInDouble) {
  for (const auto& s : kTransformSizes) {
    EXPECT_LT(largest_share<double>(s), 1e-15) << s.length << " x " << s.channels;
  }
}

TEST(TransformsRef, AreExactInDouble) {
  for (const auto& s : kTransformSizes) {
    expect_direct_sums(ConvolutionCase<double>(s));
  }
}

TEST_P(Transforms, NeverReadPadding) {
  ConvolutionCase<float> clean({3, 90, 40, 179, 89, true}), dirty = clean;
  for (size_t n = 0; n < clean.valid.size(); ++n) {
    for (size_t c = 0; c < 40 && clean.valid[n] == 0; ++c) {
      dirty.x[n * 40 + c] = dirty.grad[n * 40 + c] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  run_by_transforms(clean);
  run_by_transforms(dirty);
  EXPECT_EQ(dirty.y, clean.y);
  EXPECT_EQ(dirty.grad_x, clean.grad_x);
  EXPECT_EQ(dirty.grad_kernel, clean.grad_kernel);
}

TEST_P(Transforms, GiveTheSameBitsAtAnyNumberOfThreads) {
  ConvolutionCase<float> one({21, 130, 70, 259, 129, true}), five(one);
  const int before = num_threads();
  set_num_threads(1);
  run_by_transforms(one);
  set_num_threads(5);
  run_by_transforms(five);
  set_num_threads(before);
  EXPECT_EQ(one.y, five.y);
  EXPECT_EQ(one.grad_x, five.grad_x);
  EXPECT_EQ(one.grad_kernel, five.grad_kernel);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(Transforms, Isa::kRef, LRA_VECTOR_ISAS);

TEST(FourierPlan, HasSizesOfTwoAndThreeTimesPowersOfTwo) {
  EXPECT_EQ(fourier_size(1), 4);
  EXPECT_EQ(fourier_size(5), 6);
  EXPECT_EQ(fourier_size(7), 8);
  EXPECT_EQ(fourier_size(2047), 2048);
  EXPECT_EQ(fourier_size(2049), 3072);
  EXPECT_EQ(fourier_size(3073), 4096);
}

}  // namespace
}  // namespace lra::kernels
