#include <limits>

#include "base/parallel.h"
#include "kernels/scan/matrix_scan_test_case.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
void run_and_compare(MatrixCase<T> got, double value, double gradient) {
  got.run();
  expect_agrees_with_double(got, value, gradient);
}

void expect_equal(const MatrixCase<float>& got, const MatrixCase<float>& want) {
  EXPECT_EQ(got.o, want.o);
  EXPECT_EQ(got.grad_q, want.grad_q);
  EXPECT_EQ(got.grad_k, want.grad_k);
  EXPECT_EQ(got.grad_v, want.grad_v);
  EXPECT_EQ(got.grad_r, want.grad_r);
  EXPECT_EQ(got.grad_log_decay, want.grad_log_decay);
  EXPECT_EQ(got.grad_beta, want.grad_beta);
}

using MatrixScanTest = ImplementationTest;

// Sizes around chunks of 16 positions and vectors of 16.
TEST_P(MatrixScanTest, AgreesWithDouble) {
  for (const MatrixShape& one : {MatrixShape{1, 1, 1, 1, 1},
                                 {2, 7, 3, 8, 5},
                                 {1, 15, 1, 16, 33, false, false, 1},
                                 {2, 16, 2, 17, 16},
                                 {3, 17, 2, 32, 1, false, false, 1},
                                 {2, 49, 1, 5, 64},
                                 {2, 100, 2, 40, 24}}) {
    for (const MatrixShape& shape : all_kinds(one)) {
      for (const bool padded : {false, true}) {
        SCOPED_TRACE(text_of(shape, padded));
        run_and_compare(MatrixCase<float>(shape, padded), 4e-6, 1e-5);
        run_and_compare(MatrixCase<Bf16>(shape, padded), 0x1p-8, 0x1p-8);
      }
    }
  }
}

TEST_P(MatrixScanTest, KeepsItsErrorOverALongMemory) {
  for (const MatrixShape& shape : all_kinds({1, 4096, 1, 8, 8})) {
    run_and_compare(MatrixCase<float>(shape, false, 1e-4), 1e-5, 4e-5);
  }
}

// Down to a decay of 0.
TEST_P(MatrixScanTest, TakesDecaysOfAnySize) {
  for (const MatrixShape& shape : all_kinds({1, 40, 1, 4, 4})) {
    MatrixCase<float> one = case_of_all_decays(shape);
    run_and_compare(one, 4e-6, 1e-5);
    one.log_decay[5] = -std::numeric_limits<float>::infinity();
    one.run();
    for (const float x : one.grad_log_decay) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST_P(MatrixScanTest, HasKnownValues) {
  MatrixCase<float> one({1, 3, 1, 1, 1, false, true}, true);
  const float half = std::log(0.5f);
  one.lengths = {2};
  one.log_decay = {half, half, 9};
  one.q = {7, 11, 9};
  one.k = {1, 2, 9};
  one.v = {3, 5, 9};
  one.beta = {1, 0.5f, 9};
  one.run();
  EXPECT_FLOAT_EQ(one.o[0], 7 * 3);
  // The state 3 decays to 1.5, of which the key 2 reads 3: 5 - 3, halved, is written.
  EXPECT_FLOAT_EQ(one.o[1], 11 * (1.5f + 2 * 1));
  EXPECT_EQ(one.o[2], 0);
  one.shape.delta = false;
  one.shape.reversed_heads = 1;
  one.run();
  EXPECT_FLOAT_EQ(one.o[1], 11 * 10);
  EXPECT_FLOAT_EQ(one.o[0], 7 * (5 + 3));
  EXPECT_EQ(one.o[2], 0);
}

TEST_P(MatrixScanTest, NeverReadsPadding) {
  for (const int64_t reversed_heads : {0, 1, 2}) {
    for (MatrixShape shape : all_kinds({3, 50, 2, 20, 7})) {
      shape.reversed_heads = reversed_heads;
      MatrixCase<float> clean(shape, true), dirty = clean;
      dirty.spoil_padding();
      clean.run();
      dirty.run();
      expect_equal(dirty, clean);
      EXPECT_EQ(dirty.grad_q.back(), 0);
      EXPECT_EQ(dirty.grad_log_decay.back(), 0);
    }
  }
}

TEST_P(MatrixScanTest, SharesKeysAmongHeads) {
  for (MatrixShape shape : all_kinds({2, 37, 6, 9, 5})) {
    shape.heads_of_a_key = 3;
    shape.reversed_heads = 3;
    run_and_compare(MatrixCase<float>(shape, true), 4e-6, 1e-5);
    // The reference by keys of every head.
    MatrixShape plain = shape;
    plain.heads_of_a_key = 1;
    MatrixCase<float> shared(shape, true), apart(plain, true);
    const auto copy = [&](const std::vector<float>& from, std::vector<float>& to) {
      for (size_t i = 0; i < to.size(); ++i) {
        const size_t row = i / 9, column = i % 9;
        to[i] = from[row / 3 * 9 + column];
      }
    };
    copy(shared.q, apart.q);
    copy(shared.k, apart.k);
    copy(shared.r, apart.r);
    apart.v = shared.v, apart.grad = shared.grad, apart.log_decay = shared.log_decay;
    apart.beta = shared.beta, apart.lengths = shared.lengths;
    shared.run();
    apart.run();
    expect_equal(shared, apart);
  }
}

TEST_P(MatrixScanTest, GivesTheSameBitsAtAnyNumberOfThreads) {
  const int before = num_threads();
  MatrixCase<float> one({5, 60, 3, 20, 12, true, true}, true);
  set_num_threads(1);
  one.run();
  for (const int threads : {2, 3}) {
    MatrixCase<float> many = one;
    set_num_threads(threads);
    many.run();
    expect_equal(many, one);
  }
  set_num_threads(before);
}

TEST(MatrixScanRef, GradientIsTheSlope) {
  for (const MatrixShape& shape : all_kinds({2, 6, 2, 3, 2, false, false, 1})) {
    MatrixCase<double> at(shape, true);
    at.run();
    const auto loss = [&](MatrixCase<double> moved) {
      moved.run();
      double sum = 0;
      for (size_t i = 0; i < moved.o.size(); ++i) sum += moved.o[i] * moved.grad[i];
      return sum;
    };
    const auto expect_slope = [&](std::vector<double> MatrixCase<double>::*member,
                                  const std::vector<double>& grads) {
      for (size_t i = 0; i < (at.*member).size(); ++i) {
        MatrixCase<double> above = at, below = at;
        (above.*member)[i] += 1e-5;
        (below.*member)[i] -= 1e-5;
        EXPECT_NEAR(grads[i], (loss(above) - loss(below)) / 2e-5, 1e-7) << i;
      }
    };
    expect_slope(&MatrixCase<double>::q, at.grad_q);
    expect_slope(&MatrixCase<double>::k, at.grad_k);
    expect_slope(&MatrixCase<double>::v, at.grad_v);
    expect_slope(&MatrixCase<double>::r, at.grad_r);
    expect_slope(&MatrixCase<double>::log_decay, at.grad_log_decay);
    expect_slope(&MatrixCase<double>::beta, at.grad_beta);
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(MatrixScanTest, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
