#include "kernels/convolution/short_convolution.h"

#include <gtest/gtest.h>

#include "kernels/convolution/convolution_test_case.h"
#include "kernels/scan/test_error.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

// The arrays of a convolution, x as a part of longer rows.
template <typename T>
struct ShortCase : ConvolutionCase<T> {
  using W = Wide<T>;
  explicit ShortCase(const ConvolutionSizes& s) : ConvolutionCase<T>(s), bias(this->kernel) {
    bias.resize(static_cast<size_t>(s.channels), W(0.25f));
    grad_parameters.assign(static_cast<size_t>((s.width + 1) * s.channels), W(7));
    for (int64_t row = 0; row < s.batch * s.length; ++row) {
      const auto first = this->x.begin() + row * s.channels;
      rows.insert(rows.end(), first, first + s.channels);
      rows.insert(rows.end(), 3, T(1e30f));
    }
  }
  void run() {
    const auto& s = this->sizes;
    const ShortConvolution<T> p{s.batch,
                                s.length,
                                s.channels,
                                s.width,
                                s.future,
                                s.channels + 3,
                                rows.data(),
                                this->valid.empty() ? nullptr : this->valid.data(),
                                this->kernel.data(),
                                bias.data()};
    short_convolution_forward(p, this->y.data());
    short_convolution_backward(p, this->grad.data(), this->grad_x.data(), grad_parameters.data());
  }
  std::vector<T> rows;
  std::vector<W> bias, grad_parameters;
};

constexpr ConvolutionSizes kShortCases[] = {
    {1, 1, 1, 1, 0, false},    {2, 9, 5, 4, 0, true},     {2, 40, 16, 4, 3, false},
    {3, 2, 17, 8, 4, true},    {1, 511, 3, 3, 1, false},  {2, 512, 33, 4, 0, true},
    {2, 513, 20, 4, 3, false}, {1, 1030, 16, 8, 7, true}, {1, 600, 48, 2, 0, false}};

using ShortConvolutionTest = ImplementationTest;

template <typename T>
void expect_near_double(double value, double gradient) {
  for (const ConvolutionSizes& s : kShortCases) {
    SCOPED_TRACE(testing::Message() << s.length << " x " << s.channels << ", width " << s.width);
    ShortCase<T> got(s);
    ShortCase<double> want(s);
    want.rows.assign(got.rows.begin(), got.rows.end());
    want.grad.assign(got.grad.begin(), got.grad.end());
    got.run();
    want.run();
    EXPECT_LE(relative_error(got.y, want.y), value);
    EXPECT_LE(relative_error(got.grad_x, want.grad_x), gradient);
    EXPECT_LE(relative_error(got.grad_parameters, want.grad_parameters), gradient);
  }
}

TEST_P(ShortConvolutionTest, KeepsTheErrorContract) {
  expect_near_double<float>(1e-6, 2e-6);
  expect_near_double<Bf16>(0x1p-8, 0x1p-8);
}

LRA_INSTANTIATE_IMPLEMENTATIONS(ShortConvolutionTest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
