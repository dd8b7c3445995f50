#include "kernels/pointwise/column_sums.h"

#include <algorithm>

#include "kernels/choice.h"

namespace lra::kernels {

template <typename T>
void column_sums(int64_t rows, int64_t columns, const T* x, float* sums) {
  LRA_RETURN_CALL(choose(Op::kColumnSums), column_sums(rows, columns, x, sums));
}

template <typename T>
void ref::column_sums(int64_t rows, int64_t columns, const T* x, float* sums) {
  for (int64_t c = 0; c < columns; ++c) {
    float sum = 0;
    for (int64_t first = 0; first < rows; first += kSumRows) {
      float run = 0;
      for (int64_t r = first; r < std::min(rows, first + kSumRows); ++r) run += x[r * columns + c];
      sum += run;
    }
    sums[c] = sum;
  }
}

template void column_sums(int64_t, int64_t, const float*, float*);
template void column_sums(int64_t, int64_t, const Bf16*, float*);
template void ref::column_sums(int64_t, int64_t, const float*, float*);
template void ref::column_sums(int64_t, int64_t, const Bf16*, float*);

}  // namespace lra::kernels
