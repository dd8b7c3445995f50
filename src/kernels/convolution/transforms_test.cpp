#include "kernels/convolution/transforms.h"

#include <gtest/gtest.h>

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

// The direct sums in double.
template <typename T>
void expect_direct_sums(ConvolutionCase<T> got) {
  run_by_transforms(got);
  ConvolutionCase<double> want(got.sizes);
  const auto widen = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
  widen(want.x, got.x);
  widen(want.grad, got.grad);
  widen(want.kernel, got.kernel);
  want.valid = got.valid;
  run_directly(want);
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
