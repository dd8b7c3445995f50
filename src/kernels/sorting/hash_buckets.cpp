#include "kernels/sorting/hash_buckets.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/choice.h"
#include "kernels/gemm/gemm.h"

namespace lra::kernels {
namespace {

constexpr int64_t kRowsAtOnce = 48;

int64_t whole_vectors(int64_t n) { return (n + kGemmVector - 1) / kGemmVector * kGemmVector; }

// y [rows, padded] = x [rows, E] R, with R [E, padded].
void rotate(const float* x, int64_t x_stride, int64_t rows, int64_t dim, int64_t padded,
            const float* rotation, float* y) {
  gemm({rows, padded, dim}, {x, x_stride, 1, rotation, padded, kGemmVector, y, padded}, false);
}

void rotate(const double* x, int64_t x_stride, int64_t rows, int64_t dim, int64_t padded,
            const double* rotation, double* y) {
  std::fill(y, y + rows * padded, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t e = 0; e < dim; ++e) {
      for (int64_t n = 0; n < padded; ++n) {
        y[i * padded + n] += x[i * x_stride + e] * rotation[e * padded + n];
      }
    }
  }
}

// Rows of bfloat16 as rows of float in `space`; others stay where they are.
template <typename T>
const T* wide_rows(const T* x, int64_t&, int64_t, int64_t, std::vector<T>&) {
  return x;
}
const float* wide_rows(const Bf16* x, int64_t& stride, int64_t rows, int64_t dim,
                       std::vector<float>& space) {
  space.resize(static_cast<size_t>(rows * dim));
  for (int64_t i = 0; i < rows; ++i) std::copy_n(x + i * stride, dim, space.begin() + i * dim);
  stride = dim;
  return space.data();
}

template <typename T>
using FindLargest = int64_t (*)(const T* values, int64_t count);

template <typename T>
FindLargest<T> choose_find_largest() {
  if constexpr (std::is_same_v<T, float>) {
    LRA_RETURN_CALL(choose(Op::kGemm), index_of_largest);
  } else {
    return ref::index_of_largest<T>;
  }
}

// The rotation of one head and round with rows of whole vectors, zeros behind.
template <typename T>
std::vector<T> padded_rotation(const HashShape& shape, const T* rotation, int64_t padded) {
  std::vector<T> result(static_cast<size_t>(shape.head_dim * padded), T{0});
  for (int64_t e = 0; e < shape.head_dim; ++e) {
    std::copy_n(rotation + e * shape.half, shape.half, result.begin() + e * padded);
  }
  return result;
}

}  // namespace

template <typename T>
int64_t ref::index_of_largest(const T* values, int64_t count) {
  int64_t best = 0;
  for (int64_t n = 1; n < count; ++n) {
    if (std::abs(values[n]) > std::abs(values[best])) best = n;
  }
  return best;
}

template <typename T>
void hash_buckets(const HashShape& shape, const HeadView<const T>& x, const Wide<T>* rotations,
                  const uint8_t* mask, int32_t* buckets) {
  using W = Wide<T>;
  LRA_CHECK(shape.batch >= 1 && shape.heads >= 1 && shape.length >= 1 && shape.head_dim >= 1);
  LRA_CHECK(shape.rounds >= 1 && shape.half >= 1);
  const int64_t padded = whole_vectors(shape.half);
  const FindLargest<W> find_largest = choose_find_largest<W>();
  const auto bucket_of = [&](const W* y) {
    const int64_t largest = find_largest(y, shape.half);
    return static_cast<int32_t>(y[largest] < 0 ? largest + shape.half : largest);
  };
  parallel_for_each(shape.rounds * shape.batch * shape.heads, [&](int64_t index) {
    const int64_t round = index / (shape.batch * shape.heads);
    const int64_t b = index / shape.heads % shape.batch, h = index % shape.heads;
    const W* rotation = rotations + (h * shape.rounds + round) * shape.head_dim * shape.half;
    const std::vector<W> wide = padded_rotation(shape, rotation, padded);
    std::vector<W> y(static_cast<size_t>(kRowsAtOnce * padded)), space;
    int32_t* to = buckets + index * shape.length;
    for (int64_t first = 0; first < shape.length; first += kRowsAtOnce) {
      const int64_t rows = std::min(kRowsAtOnce, shape.length - first);
      int64_t stride = x.row_stride;
      const W* x_rows = wide_rows(x.row(b, h, first), stride, rows, shape.head_dim, space);
      rotate(x_rows, stride, rows, shape.head_dim, padded, wide.data(), y.data());
      for (int64_t i = 0; i < rows; ++i) {
        const bool valid = mask == nullptr || mask[b * shape.length + first + i] != 0;
        to[first + i] =
            valid ? bucket_of(y.data() + i * padded) : static_cast<int32_t>(2 * shape.half);
      }
    }
  });
}

template int64_t ref::index_of_largest(const float*, int64_t);
template int64_t ref::index_of_largest(const double*, int64_t);
template void hash_buckets(const HashShape&, const HeadView<const float>&, const float*,
                           const uint8_t*, int32_t*);
template void hash_buckets(const HashShape&, const HeadView<const Bf16>&, const float*,
                           const uint8_t*, int32_t*);
template void hash_buckets(const HashShape&, const HeadView<const double>&, const double*,
                           const uint8_t*, int32_t*);

}  // namespace lra::kernels
