#include "kernels/scan/selective_scan_test_case.h"

#include "base/parallel.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
void run_and_compare(SelectiveCase<T> got, double value, double gradient) {
  got.run();
  expect_agrees_with_double(got, value, gradient);
}

void expect_equal(const SelectiveCase<float>& got, const SelectiveCase<float>& want) {
  EXPECT_EQ(got.y, want.y);
  EXPECT_EQ(got.grad_x, want.grad_x);
  EXPECT_EQ(got.grad_dt, want.grad_dt);
  EXPECT_EQ(got.grad_b, want.grad_b);
  EXPECT_EQ(got.grad_c, want.grad_c);
  EXPECT_EQ(got.grad_parameters, want.grad_parameters);
}

using SelectiveScanTest = ImplementationTest;

// Sizes around chunks of 64 positions, sixteen channels, and four states at a time.
TEST_P(SelectiveScanTest, AgreesWithDouble) {
  for (const SelectiveShape& shape : {SelectiveShape{1, 1, 1, 1},
                                      {2, 7, 8, 3},
                                      {1, 63, 15, 16, 1, true},
                                      {2, 64, 16, 4},
                                      {3, 65, 17, 5},
                                      {2, 130, 34, 7, 2},
                                      {2, 66, 48, 2, 3, true},
                                      {1, 129, 12, 9, 12},
                                      {1, 1, 1, 1, 1, false, true},
                                      {2, 65, 17, 5, 1, true, true},
                                      {1, 130, 34, 8, 2, false, true}}) {
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "L " << shape.length << " D " << shape.channels << " N " << shape.states
                   << (shape.complex ? " complex" : "") << (padded ? " padded" : ""));
      const double by = shape.complex ? 4 : 1;  // a product of step and frequency is rounded
      run_and_compare(SelectiveCase<float>(shape, padded), by * 2e-6, by * 4e-6);
      run_and_compare(SelectiveCase<Bf16>(shape, padded), 0x1p-8, 0x1p-8);
    }
  }
}

TEST_P(SelectiveScanTest, GivesTheSameBitsWithTheStatesOfTheForwardPass) {
  for (const SelectiveShape& shape : {SelectiveShape{2, 7, 8, 3},
                                      {1, 64, 16, 4},
                                      {3, 200, 34, 7, 2, true},
                                      {2, 150, 20, 3, 1, false, true}}) {
    for (const bool padded : {false, true}) {
      SelectiveCase<float> kept(shape, padded), computed = kept;
      kept.run_keeping_states();
      computed.run();
      expect_equal(kept, computed);
    }
  }
}

TEST_P(SelectiveScanTest, KeepsItsErrorOverALongMemory) {
  for (const bool complex : {false, true}) {
    run_and_compare(SelectiveCase<float>({1, 16384, 3, 3, 1, false, complex}, false, 1e-4), 1e-5,
                    4e-5);
  }
}

TEST_P(SelectiveScanTest, TakesStepsOfAnySize) {
  SelectiveCase<float> one({1, 4, 3, 2}, false);
  one.raw_dt = {-80, -20, -1, 0, 1e-4f, 1, 20, 88, -100, 3, 30, -5};
  run_and_compare(one, 2e-6, 4e-6);
}

TEST_P(SelectiveScanTest, HasKnownValues) {
  SelectiveCase<float> one({1, 3, 1, 1}, true);
  one.lengths = {2};
  const float log2 = std::log(2.0f);  // softplus(0)
  one.raw_dt = {0, 0, 9};
  one.dt_bias = {0};
  one.a = {-1};  // halves the state
  one.x = {1, 2, 9};
  one.b = {3, 5, 9};
  one.c = {7, 11, 9};
  one.bias = {1};
  one.skip = {100};
  one.run();
  EXPECT_FLOAT_EQ(one.y[0], 7 * 4 * log2 + 100);
  EXPECT_FLOAT_EQ(one.y[1], 11 * (2 * log2 + 12 * log2) + 200);
  EXPECT_EQ(one.y[2], 0);
  one.shape.reversed = true;
  one.run();
  EXPECT_FLOAT_EQ(one.y[1], 11 * 12 * log2 + 200);
  EXPECT_FLOAT_EQ(one.y[0], 7 * (6 * log2 + 4 * log2) + 100);
  EXPECT_EQ(one.y[2], 0);
}

TEST_P(SelectiveScanTest, NeverReadsPadding) {
  for (const bool reversed : {false, true}) {
    SelectiveCase<float> clean({3, 90, 20, 3, 2, reversed, reversed}, true), dirty = clean;
    dirty.spoil_padding();
    clean.run();
    dirty.run();
    expect_equal(dirty, clean);
    for (const auto* rows : {&dirty.y, &dirty.grad_x, &dirty.grad_dt, &dirty.grad_b}) {
      EXPECT_EQ(rows->back(), 0);
    }
  }
}

TEST_P(SelectiveScanTest, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int before = num_threads();
  SelectiveCase<float> one({5, 100, 90, 4}, true);
  set_num_threads(1);
  one.run();
  for (const int threads : {2, 3}) {
    SelectiveCase<float> many = one;
    set_num_threads(threads);
    many.run();
    expect_equal(many, one);
  }
  set_num_threads(before);
}

TEST(SelectiveScanRef, GradientIsTheSlope) {
  for (const SelectiveShape& shape :
       {SelectiveShape{2, 9, 4, 2, 2}, {1, 9, 3, 3, 1, true}, {2, 9, 4, 2, 2, true, true}}) {
    SelectiveCase<double> at(shape, shape.batch > 1);
    at.run();
    const auto loss = [&](SelectiveCase<double> moved) {
      moved.run();
      double sum = 0;
      for (size_t i = 0; i < moved.y.size(); ++i) sum += moved.y[i] * moved.grad[i];
      return sum;
    };
    const auto expect_slope = [&](std::vector<double> SelectiveCase<double>::*member,
                                  const double* grads) {
      for (size_t i = 0; i < (at.*member).size(); ++i) {
        SelectiveCase<double> above = at, below = at;
        (above.*member)[i] += 1e-5;
        (below.*member)[i] -= 1e-5;
        EXPECT_NEAR(grads[i], (loss(above) - loss(below)) / 2e-5, 1e-7) << i;
      }
    };
    const double* const parameters = at.grad_parameters.data();
    const int64_t pairs = shape.states * shape.channels,
                  all = shape.state_numbers() * shape.channels;
    expect_slope(&SelectiveCase<double>::x, at.grad_x.data());
    expect_slope(&SelectiveCase<double>::raw_dt, at.grad_dt.data());
    expect_slope(&SelectiveCase<double>::b, at.grad_b.data());
    expect_slope(&SelectiveCase<double>::c, at.grad_c.data());
    expect_slope(&SelectiveCase<double>::a, parameters);
    expect_slope(&SelectiveCase<double>::frequency, parameters + pairs);
    expect_slope(&SelectiveCase<double>::bias, parameters + all);
    expect_slope(&SelectiveCase<double>::dt_bias, parameters + 2 * all);
    expect_slope(&SelectiveCase<double>::skip, parameters + 2 * all + shape.channels);
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(SelectiveScanTest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
