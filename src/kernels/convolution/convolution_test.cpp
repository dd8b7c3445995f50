#include "kernels/convolution/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

struct ConvolutionSizes {
  int64_t batch, length, channels, width, future;
  bool is_ragged;
};

template <typename T>
struct ConvolutionCase {
  using W = Wide<T>;

  explicit ConvolutionCase(const ConvolutionSizes& s) : sizes(s) {
    RandomStream random(static_cast<uint64_t>(s.length * 1000 + s.channels * 10 + s.width));
    const auto fill = [&](auto& values, int64_t count) {
      values.resize(static_cast<size_t>(count));
      for (auto& value : values) value = static_cast<float>(random.normal());
    };
    fill(x, s.batch * s.length * s.channels);
    fill(grad, s.batch * s.length * s.channels);
    fill(kernel, s.width * s.channels);
    y.assign(x.size(), T(9.0f));
    grad_kernel.assign(kernel.size(), 9);
    for (int64_t n = 0; s.is_ragged && n < s.batch * s.length; ++n) {
      valid.push_back(random.below(4) > 0);
    }
  }

  void run() {
    const auto& s = sizes;
    const Convolution<T> p{s.batch,
                           s.length,
                           s.channels,
                           s.width,
                           s.future,
                           x.data(),
                           valid.empty() ? nullptr : valid.data(),
                           kernel.data(),
                           y.data()};
    convolve(p);
    convolution_kernel_gradient(p, grad.data(), grad_kernel.data());
  }
  bool is_valid(int64_t item, int64_t t) const {
    if (t < 0 || t >= sizes.length) return false;
    return valid.empty() || valid[static_cast<size_t>(item * sizes.length + t)] != 0;
  }

  ConvolutionSizes sizes;
  std::vector<T> x, grad, y;
  std::vector<W> kernel, grad_kernel;
  std::vector<uint8_t> valid;
};

// Adds the terms of one element of the definition; their sum and that of their absolute values.
struct Sum {
  double value = 0, size = 0;
  void add(double a, double b) { value += a * b, size += std::abs(a * b); }
};

template <typename T>
void expect_definition(ConvolutionCase<T> c) {
  c.run();
  const auto& s = c.sizes;
  const double unit = std::is_same_v<T, double> ? 0x1p-51 : 0x1p-23;
  const double narrow = std::is_same_v<T, Bf16> ? 0x1p-8 : 0;
  const auto at = [&](int64_t item, int64_t t, int64_t channel) {
    return static_cast<size_t>((item * s.length + t) * s.channels + channel);
  };
  std::vector<Sum> of_kernel(c.kernel.size());
  for (int64_t item = 0; item < s.batch; ++item) {
    for (int64_t t = 0; t < s.length; ++t) {
      for (int64_t channel = 0; channel < s.channels; ++channel) {
        Sum sum;
        for (int64_t j = 0; j < s.width && c.is_valid(item, t); ++j) {
          if (!c.is_valid(item, t + s.future - j)) continue;
          const auto n = static_cast<size_t>(j * s.channels + channel);
          const double x{c.x[at(item, t + s.future - j, channel)]};
          sum.add(double{c.kernel[n]}, x);
          of_kernel[n].add(double{c.grad[at(item, t, channel)]}, x);
        }
        const double bound =
            static_cast<double>(s.width) * unit * sum.size + narrow * std::abs(sum.value);
        ASSERT_NEAR(double{c.y[at(item, t, channel)]}, sum.value, bound)
            << s.length << " x " << s.channels << ", width " << s.width << ", at " << t;
      }
    }
  }
  const auto chain = static_cast<double>(kConvolutionRows + s.batch * s.length / kConvolutionRows);
  for (size_t n = 0; n < of_kernel.size(); ++n) {
    ASSERT_NEAR(c.grad_kernel[n], of_kernel[n].value, chain * unit * of_kernel[n].size)
        << s.length << " x " << s.channels << ", width " << s.width << ", number " << n;
  }
}

constexpr ConvolutionSizes kConvolutionSizes[] = {
    {1, 1, 1, 1, 0, false},   {2, 5, 16, 3, 1, false},   {3, 33, 17, 5, 2, true},
    {2, 40, 48, 9, 8, true},  {1, 300, 20, 70, 0, true}, {2, 64, 31, 64, 33, false},
    {2, 7, 16, 25, 12, true}, {1, 9, 5, 4, -3, false},   {1, 9, 5, 4, 6, false}};

using ConvolutionKernel = ImplementationTest;

TEST_P(ConvolutionKernel, KeepsTheErrorContract) {
  for (const ConvolutionSizes& sizes : kConvolutionSizes) {
    expect_definition(ConvolutionCase<float>(sizes));
    expect_definition(ConvolutionCase<Bf16>(sizes));
  }
}

TEST(ConvolutionKernelRef, IsExactInDouble) {
  for (const ConvolutionSizes& sizes : kConvolutionSizes) {
    expect_definition(ConvolutionCase<double>(sizes));
  }
}

TEST_P(ConvolutionKernel, GivesTheSameBitsAtAnyNumberOfThreads) {
  ConvolutionCase<float> one({3, 300, 40, 100, 50, true}), five(one);
  const int before = num_threads();
  set_num_threads(1);
  one.run();
  set_num_threads(5);
  five.run();
  set_num_threads(before);
  EXPECT_EQ(one.y, five.y);
  EXPECT_EQ(one.grad_kernel, five.grad_kernel);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(ConvolutionKernel, Isa::kRef, Isa::kAvx2, Isa::kAvx512);

}  // namespace
}  // namespace lra::kernels
