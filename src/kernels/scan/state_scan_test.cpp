#include "kernels/scan/state_scan_test_case.h"

#include "base/parallel.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
void run_and_compare(StateCase<T> got, double value, double gradient) {
  got.run();
  expect_agrees_with_double(got, value, gradient);
}

using StateScanTest = ImplementationTest;

// Sizes around chunks of 64 positions, vectors of sixteen states and tasks of 64.
TEST_P(StateScanTest, AgreesWithDouble) {
  for (const StateShape& shape : {StateShape{1, 1, 1},
                                  {2, 7, 8},
                                  {1, 63, 15},
                                  {2, 64, 16, 1},
                                  {3, 65, 17},
                                  {2, 130, 64},
                                  {1, 66, 65},
                                  {2, 9, 100, 1},
                                  {1, 129, 48}}) {
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "L " << shape.length << " P " << shape.states << (padded ? " padded" : ""));
      run_and_compare(StateCase<float>(shape, padded), 2e-6, 4e-6);
      // Two roundings of the sum over directions; grad_a is of rounded states.
      run_and_compare(StateCase<Bf16>(shape, padded), 0x1p-8, 0x1p-7);
    }
  }
}

TEST_P(StateScanTest, KeepsItsErrorOverALongMemory) {
  run_and_compare(StateCase<float>({1, 16384, 3}, false, 5e-5), 4e-6, 2e-5);
}

TEST_P(StateScanTest, HasKnownValues) {
  StateCase<float> one({1, 4, 1}, true);
  one.lengths = {3};
  one.v = {1, 0, 0, 2, 100, 0, 9, 9};                           // 1, 2i, 100, padding
  one.a = {0, 0.5f};                                            // i / 2
  one.grad = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};  // of the last valid state
  one.run();
  // Forward 1, 2i + i/2, 100 + i (2.5i)/2; backward 1 + i/2 (52 i), 2i + 50i, 100.
  EXPECT_EQ(one.x,
            (std::vector<float>{1, 0, -25, 0, 0, 2.5f, 0, 52, 98.75f, 0, 100, 0, 0, 0, 0, 0}));
  EXPECT_EQ(one.grad_v, (std::vector<float>{-0.25f, 0, 0, -0.5f, 1, 0, 0, 0}));
  // r = (-1/4, -i/2, 1), and r[1] conj(x[0]) + r[2] conj(x[1]) = -i/2 - 2.5 i.
  EXPECT_EQ(one.grad_a, (std::vector<float>{0, -3}));
}

TEST_P(StateScanTest, NeverReadsPadding) {
  StateCase<float> clean({3, 90, 20}, true), dirty = clean;
  dirty.spoil_padding();
  clean.run();
  dirty.run();
  EXPECT_EQ(dirty.x, clean.x);
  EXPECT_EQ(dirty.grad_v, clean.grad_v);
  EXPECT_EQ(dirty.grad_a, clean.grad_a);
  EXPECT_EQ(dirty.x.back(), 0);
  EXPECT_EQ(dirty.grad_v.back(), 0);
}

TEST_P(StateScanTest, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int before = num_threads();
  StateCase<float> one({5, 100, 90}, true);
  set_num_threads(1);
  one.run();
  for (const int threads : {2, 3}) {
    StateCase<float> many = one;
    set_num_threads(threads);
    many.run();
    EXPECT_EQ(many.x, one.x);
    EXPECT_EQ(many.grad_v, one.grad_v);
    EXPECT_EQ(many.grad_a, one.grad_a);
  }
  set_num_threads(before);
}

TEST(StateScanRef, GradientIsTheSlope) {
  for (const StateShape& shape : {StateShape{2, 9, 2}, StateShape{1, 9, 3, 1}}) {
    StateCase<double> at(shape, shape.batch > 1);
    at.run();
    const auto loss = [&](StateCase<double> moved) {
      moved.run();
      double sum = 0;
      for (size_t i = 0; i < moved.x.size(); ++i) sum += moved.x[i] * moved.grad[i];
      return sum;
    };
    const auto expect_slope = [&](std::vector<double> StateCase<double>::*member,
                                  const std::vector<double>& grads) {
      for (size_t i = 0; i < grads.size(); ++i) {
        StateCase<double> above = at, below = at;
        (above.*member)[i] += 1e-5;
        (below.*member)[i] -= 1e-5;
        EXPECT_NEAR(grads[i], (loss(above) - loss(below)) / 2e-5, 1e-7) << i;
      }
    };
    expect_slope(&StateCase<double>::v, at.grad_v);
    expect_slope(&StateCase<double>::a, at.grad_a);
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(StateScanTest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
