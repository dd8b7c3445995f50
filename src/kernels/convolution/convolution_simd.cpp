// Products of neighboring positions with neighboring lags share their rows of x: eight by four
// products take eleven rows, and the eight sums stay in registers.
#include "kernels/convolution/convolution.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

using Row = PanelRow<float>;

// Sums that are held at once; others have half as many registers, or each a quarter as wide.
constexpr int kSums = kIsa == Isa::kAvx512 ? 8 : 4;
constexpr int kTerms = 4;
static_assert(kPanelRows % kSums == 0 && kPanelRows % kTerms == 0);

}  // namespace

void convolve_panel(int64_t rows, int64_t width, const Row* x, const Row* kernel, Row* y) {
  for (int64_t t = 0; t < rows; t += kSums) {
    Floats sum[kSums];
    for (Floats& each : sum) each = zeros();
    for (int64_t j = 0; j < width; j += kTerms) {
      const Row* from = x + t + width - j - kTerms;
      Floats weight[kTerms];
      for (int n = 0; n < kTerms; ++n) weight[n] = load(kernel[j + n].of);
#pragma GCC unroll 16
      for (int i = 0; i < kSums + kTerms - 1; ++i) {
        const Floats value = load(from[i].of);
#pragma GCC unroll 4
        for (int n = 0; n < kTerms; ++n) {
          const int r = i + n - (kTerms - 1);
          if (r >= 0 && r < kSums) sum[r] = multiply_add(weight[n], value, sum[r]);
        }
      }
    }
    for (int r = 0; r < kSums; ++r) store(y[t + r].of, sum[r]);
  }
}

void correlate_panel(int64_t rows, int64_t width, const Row* x, const Row* grad, Row* sums) {
  for (int64_t j = 0; j < width; j += kSums) {
    Floats sum[kSums];
    for (Floats& each : sum) each = zeros();
    for (int64_t t = 0; t < rows; t += kTerms) {
      const Row* from = x + t + width - j - kSums;
      Floats weight[kTerms];
      for (int n = 0; n < kTerms; ++n) weight[n] = load(grad[t + n].of);
#pragma GCC unroll 16
      for (int i = 0; i < kSums + kTerms - 1; ++i) {
        const Floats value = load(from[i].of);
#pragma GCC unroll 4
        for (int n = 0; n < kTerms; ++n) {
          const int r = kSums - 1 - i + n;  // the lag j + r
          if (r >= 0 && r < kSums) sum[r] = multiply_add(weight[n], value, sum[r]);
        }
      }
    }
    for (int r = 0; r < kSums; ++r) store(sums[j + r].of, load(sums[j + r].of) + sum[r]);
  }
}

}  // namespace lra::kernels::LRA_ISA
