#include "kernels/convolution/transforms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

struct TransformSizes {
  int64_t batch, length, channels, width, future;
  bool is_ragged;
};

template <typename T>
struct TransformCase {
  using W = Wide<T>;

  explicit TransformCase(const TransformSizes& s) : sizes(s) {
    RandomStream random(static_cast<uint64_t>(s.length * 1000 + s.channels * 10 + s.width));
    const auto fill = [&](auto& values, int64_t count) {
      values.resize(static_cast<size_t>(count));
      for (auto& value : values) value = static_cast<float>(random.normal());
    };
    fill(x, s.batch * s.length * s.channels);
    fill(grad, s.batch * s.length * s.channels);
    fill(kernel, s.width * s.channels);
    for (int64_t n = 0; s.is_ragged && n < s.batch * s.length; ++n) {
      valid.push_back(random.below(4) > 0);
    }
  }
  Convolution<T> problem() {
    const auto& s = sizes;
    return {s.batch,
            s.length,
            s.channels,
            s.width,
            s.future,
            x.data(),
            valid.empty() ? nullptr : valid.data(),
            kernel.data(),
            y.data()};
  }
  void run() {
    y.assign(x.size(), T(9.0f));
    grad_x.assign(x.size(), T(9.0f));
    grad_kernel.assign(kernel.size(), 9);
    convolve_by_transforms(problem());
    convolution_gradients_by_transforms(problem(), grad.data(), grad_x.data(), grad_kernel.data());
  }
  void run_directly() {
    y.resize(x.size());
    grad_x.resize(x.size());
    grad_kernel.resize(kernel.size());
    convolve(problem());
    convolution_kernel_gradient(problem(), grad.data(), grad_kernel.data());
    std::vector<W> reversed;
    for (int64_t j = sizes.width - 1; j >= 0; --j) {
      const auto row = kernel.begin() + j * sizes.channels;
      reversed.insert(reversed.end(), row, row + sizes.channels);
    }
    auto back = problem();
    back.x = grad.data();
    back.kernel = reversed.data();
    back.future = sizes.width - 1 - sizes.future;
    back.y = grad_x.data();
    convolve(back);
  }

  TransformSizes sizes;
  std::vector<T> x, grad, y, grad_x;
  std::vector<W> kernel, grad_kernel;
  std::vector<uint8_t> valid;
};

double norm(const auto& values) {
  double sum = 0;
  for (const auto value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

// The direct sums in double.
template <typename T>
void expect_direct_sums(TransformCase<T> got) {
  got.run();
  TransformCase<double> want(got.sizes);
  const auto widen = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
  widen(want.x, got.x);
  widen(want.grad, got.grad);
  widen(want.kernel, got.kernel);
  want.valid = got.valid;
  want.run_directly();
  // Of one example and channel.
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
constexpr TransformSizes kTransformSizes[] = {
    {1, 1, 1, 1, 0, false},     {1, 3, 1, 3, 0, false},       {9, 7, 64, 1, 0, true},
    {2, 6, 3, 10, 2, false},    {2, 3, 16, 3, 1, false},      {1, 5, 17, 6, 5, true},
    {3, 33, 33, 33, 0, true},   {2, 97, 48, 193, 96, true},   {1, 100, 32, 70, 69, false},
    {19, 12, 5, 23, 11, false}, {1, 300, 40, 1000, 400, true}};

using Transforms = ImplementationTest;

TEST_P(Transforms, AgreeWithDirectSums) {
  for (const auto& s : kTransformSizes) {
    SCOPED_TRACE(testing::Message() << "L " << s.length << " D " << s.channels << " K " << s.width);
    expect_direct_sums(TransformCase<float>(s));
    expect_direct_sums(TransformCase<Bf16>(s));
  }
}

TEST(TransformsRef, AreExactInDouble) {
  for (const auto& s : kTransformSizes) {
    expect_direct_sums(TransformCase<double>(s));
  }
}

TEST_P(Transforms, NeverReadPadding) {
  TransformCase<float> clean({3, 90, 40, 179, 89, true}), dirty = clean;
  for (size_t n = 0; n < clean.valid.size(); ++n) {
    for (size_t c = 0; c < 40 && clean.valid[n] == 0; ++c) {
      dirty.x[n * 40 + c] = dirty.grad[n * 40 + c] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  clean.run();
  dirty.run();
  EXPECT_EQ(dirty.y, clean.y);
  EXPECT_EQ(dirty.grad_x, clean.grad_x);
  EXPECT_EQ(dirty.grad_kernel, clean.grad_kernel);
}

TEST_P(Transforms, GiveTheSameBitsAtAnyNumberOfThreads) {
  TransformCase<float> one({21, 130, 70, 259, 129, true}), five(one);
  const int before = num_threads();
  set_num_threads(1);
  one.run();
  set_num_threads(5);
  five.run();
  set_num_threads(before);
  EXPECT_EQ(one.y, five.y);
  EXPECT_EQ(one.grad_x, five.grad_x);
  EXPECT_EQ(one.grad_kernel, five.grad_kernel);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(Transforms, Isa::kRef, Isa::kAvx2, Isa::kAvx512);

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
