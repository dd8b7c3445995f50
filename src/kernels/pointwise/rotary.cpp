#include "kernels/pointwise/rotary.h"

#include "base/parallel.h"

namespace lra::kernels {
namespace {

template <typename T>
void turn_row(const Rotary<T>& p, const T* x, const Wide<T>* table, T* y) {
  using W = Wide<T>;
  for (int64_t head = 0; head < p.heads; ++head, x += p.width, y += p.width) {
    for (int64_t c = 0; c < p.width; c += 2) {
      const W sine = p.back ? -table[c] : table[c], cosine = table[c + 1];
      const W even = x[c], odd = x[c + 1];
      y[c] = even * cosine - odd * sine;
      y[c + 1] = even * sine + odd * cosine;
    }
  }
}

}  // namespace

template <typename T>
void rotary(const Rotary<T>& p, T* y) {
  const int64_t columns = p.heads * p.width;
  constexpr int64_t kGrain = 64;  // rows that are worth waking a thread for
  parallel_ranges(p.batch * p.length, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      turn_row(p, p.x + row * p.row_stride, p.table + row % p.length * p.width, y + row * columns);
    }
  });
}

template void rotary(const Rotary<float>&, float*);
template void rotary(const Rotary<Bf16>&, Bf16*);
template void rotary(const Rotary<double>&, double*);

}  // namespace lra::kernels
