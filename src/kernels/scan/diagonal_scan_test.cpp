#include "kernels/scan/scan_by_convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/scan/test_error.h"
#include "kernels/scan/test_padding.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

struct Shape {
  int64_t batch, length, channels, modes, planes = 2, directions = 2;
};

// One problem with its gradients, in arrays of type T.
template <typename T>
struct Case {
  using W = Wide<T>;

  // |a| is 1 - decay of each mode, at angles up to pi. With `padded`, lengths from 0 to all.
  Case(const Shape& shape, bool padded, bool skipped, double decay = 0.2) : shape(shape) {
    RandomStream random(static_cast<uint64_t>(shape.length * 100 + shape.modes));
    const int64_t count = shape.batch * shape.length * shape.channels;
    for (int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(random.normal()));
    for (int64_t i = 0; i < count; ++i) grad.push_back(static_cast<float>(random.normal()));
    const int64_t plane = shape.modes * shape.channels;
    std::vector<float> imaginary;
    for (int64_t i = 0; i < plane; ++i) {
      const double size = 1 - decay * random.uniform(), angle = std::numbers::pi * random.uniform();
      a.push_back(static_cast<float>(shape.planes == 2 ? size * std::cos(angle) : size));
      imaginary.push_back(static_cast<float>(size * std::sin(angle)));
    }
    if (shape.planes == 2) a.insert(a.end(), imaginary.begin(), imaginary.end());
    for (int64_t i = 0; i < shape.directions * shape.planes * plane; ++i) {
      c.push_back(static_cast<float>(random.normal()));
    }
    for (int64_t i = 0; skipped && i < shape.channels; ++i) {
      skip.push_back(static_cast<float>(random.normal()));
    }
    if (padded) lengths = draw_lengths(random, shape.batch, shape.length);
  }
  // The same numbers in double.
  template <typename U>
  explicit Case(const Case<U>& other)
      : shape(other.shape),
        x(other.x.begin(), other.x.end()),
        grad(other.grad.begin(), other.grad.end()),
        a(other.a.begin(), other.a.end()),
        c(other.c.begin(), other.c.end()),
        skip(other.skip.begin(), other.skip.end()),
        lengths(other.lengths) {}

  DiagonalScan<T> problem() const {
    return {.batch = shape.batch,
            .length = shape.length,
            .channels = shape.channels,
            .modes = shape.modes,
            .planes = shape.planes,
            .directions = shape.directions,
            .x = x.data(),
            .lengths = lengths.empty() ? nullptr : lengths.data(),
            .a = a.data(),
            .c = c.data(),
            .skip = skip.empty() ? nullptr : skip.data()};
  }
  void run(void (*forward)(const DiagonalScan<T>&, T*) = diagonal_scan_forward<T>,
           void (*backward)(const DiagonalScanBackward<T>&) = diagonal_scan_backward<T>) {
    const DiagonalScan<T> p = problem();
    y.assign(x.size(), T(7));
    grad_x.assign(x.size(), T(7));
    grad_parameters.assign(static_cast<size_t>(scan_parameters(p)), W(7));
    forward(p, y.data());
    backward({p, grad.data(), grad_x.data(), grad_parameters.data()});
  }
  void run_by_convolution() {
    run(scan_forward_by_convolution<T>, scan_backward_by_convolution<T>);
  }

  Shape shape;
  std::vector<T> x, grad, y, grad_x;
  std::vector<W> a, c, skip, grad_parameters;
  std::vector<int32_t> lengths;
};

template <typename T>
void expect_agrees_with_double(Case<T> got, double value, double gradient,
                               void (Case<T>::*run)() = nullptr) {
  Case<double> want(got);
  run == nullptr ? got.run() : (got.*run)();
  want.run();
  EXPECT_LE(relative_error(got.y, want.y), value);
  EXPECT_LE(relative_error(got.grad_x, want.grad_x), value);
  EXPECT_LE(relative_error(got.grad_parameters, want.grad_parameters), gradient);
}

// Sizes around chunks of 64 positions, sixteen channels and groups of four modes.
constexpr Shape kShapes[] = {{1, 1, 1, 1},          {2, 7, 3, 2},      {1, 63, 15, 3},
                             {2, 64, 16, 4},        {3, 65, 17, 5},    {2, 130, 40, 32},
                             {1, 257, 2, 7},        {2, 65, 17, 5, 1}, {2, 65, 17, 5, 2, 1},
                             {1, 200, 16, 64, 1, 1}};

using DiagonalScanTest = ImplementationTest;

TEST_P(DiagonalScanTest, AgreesWithDouble) {
  for (const Shape& shape : kShapes) {
    for (const bool padded : {false, true}) {
      for (const bool skipped : {false, true}) {
        SCOPED_TRACE(testing::Message() << "L " << shape.length << " N " << shape.modes
                                        << (padded ? " padded" : "") << (skipped ? " skip" : ""));
        expect_agrees_with_double(Case<float>(shape, padded, skipped), 2e-6, 4e-6);
        expect_agrees_with_double(Case<Bf16>(shape, padded, skipped), 0x1p-8, 4e-6);
      }
    }
  }
}

TEST_P(DiagonalScanTest, AgreesWithDoubleByConvolution) {
  for (const Shape& shape : kShapes) {
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "L " << shape.length << " N " << shape.modes << (padded ? " padded" : ""));
      expect_agrees_with_double(Case<float>(shape, padded, padded), 2e-6, 4e-6,
                                &Case<float>::run_by_convolution);
      expect_agrees_with_double(Case<Bf16>(shape, padded, padded), 0x1p-8, 4e-6,
                                &Case<Bf16>::run_by_convolution);
    }
  }
}

// Both ways are taken, each where its costs are lower.
TEST(DiagonalScanChoice, DependsOnShapes) {
  const auto is_by_convolution = [](const Shape& shape) {
    return is_faster_by_convolution(Case<float>(shape, false, false).problem());
  };
  EXPECT_TRUE(is_by_convolution({16, 1024, 32, 32}));
  EXPECT_FALSE(is_by_convolution({16, 1024, 32, 2}));  // few states
  EXPECT_FALSE(is_by_convolution({2, 1024, 32, 32}));  // the kernel costs more than the examples
  EXPECT_FALSE(is_by_convolution({4, 16384, 1, 32}));  // circles that leave the cache
  EXPECT_FALSE(is_faster_by_convolution(Case<double>({16, 1024, 1, 32}, false, false).problem()));
}

// The memory of Path-X: a pole at 1 - 5e-5 over 16,384 positions.
TEST_P(DiagonalScanTest, KeepsItsErrorOverALongMemory) {
  expect_agrees_with_double(Case<float>({1, 16384, 3, 3}, false, true, 5e-5), 4e-6, 2e-5);
  expect_agrees_with_double(Case<float>({1, 16384, 3, 3, 1}, false, true, 5e-5), 4e-6, 2e-5);
}

TEST_P(DiagonalScanTest, HasKnownValues) {
  Case<float> one({1, 4, 1, 1, 2, 2}, true, false);
  one.lengths = {3};
  one.x = {1, 10, 100, 1000};
  one.a = {0, 0.5f};      // i / 2: powers i/2, -1/4, -i/8
  one.c = {1, 0, 0, -2};  // forward 1; backward -2 i: Re(-2 i (u + i v)) = 2 v
  one.grad = {0, 1, 0, 0};
  one.run();
  // Forward x[l] - x[l - 2] / 4; backward the state at l + 1 is x[l + 1] + i/2 x[l + 2] - ...
  EXPECT_EQ(one.y, (std::vector<float>{1 + 100, 10, 100 - 0.25f, 0}));
  EXPECT_EQ(one.grad_x, (std::vector<float>{0, 1, 0, 0}));
}

TEST_P(DiagonalScanTest, NeverReadsPadding) {
  Case<float> clean({3, 90, 20, 3}, true, true), dirty = clean;
  for (auto* rows : {&dirty.x, &dirty.grad}) spoil_padding(dirty.lengths, 90, 20, *rows);
  clean.run();
  dirty.run();
  EXPECT_EQ(dirty.y, clean.y);
  EXPECT_EQ(dirty.grad_x, clean.grad_x);
  EXPECT_EQ(dirty.grad_parameters, clean.grad_parameters);
  EXPECT_EQ(dirty.y.back(), 0);
  EXPECT_EQ(dirty.grad_x.back(), 0);
}

TEST_P(DiagonalScanTest, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int before = num_threads();
  Case<float> one({5, 100, 40, 3}, true, true);
  set_num_threads(1);
  one.run();
  for (const int threads : {2, 3}) {
    Case<float> many = one;
    set_num_threads(threads);
    many.run();
    EXPECT_EQ(many.y, one.y);
    EXPECT_EQ(many.grad_x, one.grad_x);
    EXPECT_EQ(many.grad_parameters, one.grad_parameters);
  }
  set_num_threads(before);
}

TEST(DiagonalScanRef, GradientIsTheSlope) {
  for (const Shape& shape : {Shape{2, 9, 2, 3}, Shape{2, 9, 2, 3, 1}, Shape{1, 9, 2, 2, 2, 1}}) {
    Case<double> at(shape, shape.batch > 1, true);
    at.run();
    const auto loss = [&](Case<double> moved) {
      moved.run();
      double sum = 0;
      for (size_t i = 0; i < moved.y.size(); ++i) sum += moved.y[i] * moved.grad[i];
      return sum;
    };
    const auto expect_slope = [&](std::vector<double> Case<double>::*member, const double* grads) {
      for (size_t i = 0; i < (at.*member).size(); ++i) {
        Case<double> above = at, below = at;
        (above.*member)[i] += 1e-5;
        (below.*member)[i] -= 1e-5;
        EXPECT_NEAR(grads[i], (loss(above) - loss(below)) / 2e-5, 1e-7) << i;
      }
    };
    const double* grads = at.grad_parameters.data();
    expect_slope(&Case<double>::x, at.grad_x.data());
    expect_slope(&Case<double>::a, grads);
    expect_slope(&Case<double>::c, grads + at.a.size());
    expect_slope(&Case<double>::skip, grads + at.a.size() + at.c.size());
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(DiagonalScanTest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
