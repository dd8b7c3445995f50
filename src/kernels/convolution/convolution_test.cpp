#include "kernels/convolution/convolution_test_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
void run(ConvolutionCase<T>& c) {
  convolve(c.problem());
  convolution_kernel_gradient(c.problem(), c.grad.data(), c.grad_kernel.data());
}

// Adds the terms of one element of the definition; their sum and that of their absolute values.
struct Sum {
  double value = 0, size = 0;
  void add(double a, double b) { value += a * b, size += std::abs(a * b); }
};

template <typename T>
void expect_definition(ConvolutionCase<T> c) {
  run(c);
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
  run(one);
  set_num_threads(5);
  run(five);
  set_num_threads(before);
  EXPECT_EQ(one.y, five.y);
  EXPECT_EQ(one.grad_kernel, five.grad_kernel);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(ConvolutionKernel, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
