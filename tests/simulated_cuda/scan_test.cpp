// Selective scans and state recurrences on a simulated CUDA device against the CPU's references in
// double: the cases of the CPU kernels' tests, at sizes that are awkward here.
#include <limits>

#include "kernels/cuda/kernels.h"
#include "kernels/scan/matrix_scan_test_case.h"
#include "kernels/scan/selective_scan_test_case.h"
#include "kernels/scan/state_scan_test_case.h"

namespace lra::kernels {
namespace {

std::vector<float> scratch_of(int64_t count) {
  return std::vector<float>(static_cast<size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

template <typename T>
void run_on_device(SelectiveCase<T>& c) {
  c.clear();
  cuda::selective_scan_forward(c.problem(), c.y.data(), nullptr);
  auto scratch = scratch_of(cuda::selective_scan_scratch(c.problem()));
  cuda::selective_scan_backward(c.backward(), scratch.data(), nullptr);
}

template <typename T>
void run_on_device(StateCase<T>& c) {
  c.clear();
  cuda::state_scan_forward(c.problem(), c.x.data(), nullptr);
  auto scratch = scratch_of(cuda::state_scan_scratch(c.problem()));
  cuda::state_scan_backward(c.backward(), scratch.data(), nullptr);
}

template <typename T>
void run_on_device(MatrixCase<T>& c) {
  c.clear();
  cuda::matrix_scan_forward(c.problem(), c.o.data(), nullptr);
  auto scratch = scratch_of(cuda::matrix_scan_scratch(c.problem()));
  cuda::matrix_scan_backward(c.backward(), scratch.data(), nullptr);
}

// Padding is NaN, which neither the kernels nor the references read.
template <typename C>
void run_and_compare(C got, double value, double gradient) {
  got.spoil_padding();
  run_on_device(got);
  expect_agrees_with_double(got, value, gradient);
}

// Sizes around chunks of 16 positions (8 with complex or more states, 4 with both, 2 with most),
// channels of a block, which are 128 divided by the lanes of a channel, and four states of a lane.
TEST(SimulatedCudaScan, SelectiveScanAgreesWithDouble) {
  for (const SelectiveShape& shape : {SelectiveShape{1, 1, 1, 1},
                                      {2, 7, 130, 3},
                                      {1, 15, 33, 16, 1, true},
                                      {2, 16, 32, 4},
                                      {3, 17, 70, 5},
                                      {2, 40, 34, 7, 2},
                                      {2, 33, 48, 2, 3, true},
                                      {1, 50, 12, 9, 12},
                                      {2, 18, 5, 100},
                                      {1, 19, 6, 200, 1, true},
                                      {1, 7, 5, 300},
                                      {1, 1, 1, 1, 1, false, true},
                                      {2, 7, 130, 3, 1, false, true},
                                      {1, 9, 33, 16, 1, true, true},
                                      {2, 17, 34, 7, 2, false, true},
                                      {2, 33, 12, 5, 12, true, true},
                                      {1, 9, 6, 200, 1, true, true}}) {
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

TEST(SimulatedCudaScan, SelectiveScanKeepsItsErrorOverALongMemory) {
  for (const bool complex : {false, true}) {
    const SelectiveShape shape = {1, 4096, 3, 3, 1, false, complex};
    run_and_compare(SelectiveCase<float>(shape, false, 1e-4), 1e-5, 4e-5);
  }
}

TEST(SimulatedCudaScan, SelectiveScanTakesStepsOfAnySize) {
  SelectiveCase<float> one({1, 4, 3, 2}, false);
  one.raw_dt = {-80, -20, -1, 0, 1e-4f, 1, 20, 88, -100, 3, 30, -5};
  run_and_compare(one, 2e-6, 4e-6);
}

TEST(SimulatedCudaScan, SelectiveScanTakesNoBiasAndSkipForZero) {
  for (const bool complex : {false, true}) {
    SelectiveCase<float> one({2, 20, 9, 6, 1, false, complex}, true);
    one.bias.clear();
    one.skip.clear();
    const double by = complex ? 4 : 1;
    run_and_compare(one, by * 2e-6, by * 4e-6);
  }
}

// Sizes around the 16 positions that are read at a time and the 32 states of a block.
TEST(SimulatedCudaScan, StateScanAgreesWithDouble) {
  for (const StateShape& shape : {StateShape{1, 1, 1},
                                  {2, 7, 8},
                                  {1, 15, 31},
                                  {2, 16, 32, 1},
                                  {3, 17, 33},
                                  {2, 130, 70},
                                  {2, 9, 100, 1}}) {
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "L " << shape.length << " P " << shape.states << (padded ? " padded" : ""));
      run_and_compare(StateCase<float>(shape, padded), 2e-6, 4e-6);
      run_and_compare(StateCase<Bf16>(shape, padded), 0x1p-8, 0x1p-7);
    }
  }
}

TEST(SimulatedCudaScan, StateScanKeepsItsErrorOverALongMemory) {
  run_and_compare(StateCase<float>({1, 16384, 3}, false, 5e-5), 4e-6, 2e-5);
}

// Sizes around tiles of 16 positions, 4 and 8 numbers of a lane, and rows of a block, which are 128
// divided by the lanes of a row.
TEST(SimulatedCudaScan, MatrixScanAgreesWithDouble) {
  for (const MatrixShape& one : {MatrixShape{1, 1, 1, 1, 1},
                                 {2, 15, 3, 8, 5, false, false, 1},
                                 {2, 16, 2, 17, 9},
                                 {1, 33, 2, 3, 70, false, false, 2},
                                 {1, 18, 1, 260, 2},
                                 {2, 20, 4, 6, 7, false, false, 2, false, 2}}) {
    for (const MatrixShape& shape : all_kinds(one)) {
      if (shape.reads && shape.keys > 256) continue;  // has no kernel
      for (const bool padded : {false, true}) {
        SCOPED_TRACE(text_of(shape, padded));
        run_and_compare(MatrixCase<float>(shape, padded), 4e-6, 1e-5);
        run_and_compare(MatrixCase<Bf16>(shape, padded), 0x1p-8, 0x1p-8);
      }
    }
  }
}

TEST(SimulatedCudaScan, MatrixScanKeepsItsErrorOverALongMemory) {
  for (const MatrixShape& shape : all_kinds({1, 4096, 1, 8, 8})) {
    run_and_compare(MatrixCase<float>(shape, false, 1e-4), 1e-5, 4e-5);
  }
}

TEST(SimulatedCudaScan, MatrixScanTakesDecaysOfAnySize) {
  for (const MatrixShape& shape : all_kinds({1, 40, 1, 4, 4})) {
    MatrixCase<float> one = case_of_all_decays(shape);
    run_and_compare(one, 4e-6, 1e-5);
    one.log_decay[5] = -std::numeric_limits<float>::infinity();
    run_on_device(one);
    for (const float x : one.grad_log_decay) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(SimulatedCudaScan, TakesEmptyProblems) {
  run_and_compare(MatrixCase<float>({0, 5, 2, 3, 2}, false), 0, 0);
  run_and_compare(MatrixCase<float>({2, 0, 2, 3, 2}, false), 0, 0);
  run_and_compare(SelectiveCase<float>({0, 5, 3, 2}, false), 0, 0);
  run_and_compare(SelectiveCase<float>({2, 0, 3, 2}, false), 0, 0);
  run_and_compare(StateCase<float>({0, 5, 3}, false), 0, 0);
  run_and_compare(StateCase<float>({2, 0, 3}, false), 0, 0);
}

}  // namespace
}  // namespace lra::kernels
