// Row after row, with the sums of a slice in the first cache: rows are read in the order in which
// they lie, and additions to one sum are a row apart.
#include "kernels/pointwise/batch_norm.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Calls body(row) for the valid ones of rows [begin, end).
template <typename F>
void for_each_valid(const uint8_t* valid, int64_t begin, int64_t end, const F& body) {
  for (int64_t r = begin; r < end; ++r) {
    if (valid == nullptr || valid[r] != 0) body(r);
  }
}

// Calls write(n, c, lanes) for sixteen elements n of column c at a time, of the valid ones of rows
// [begin, end); the others of `to` become 0.
template <typename T, typename F>
void write_rows(const uint8_t* valid, int64_t begin, int64_t end, int64_t columns, T* to,
                const F& write) {
  for (int64_t r = begin; r < end; ++r) {
    if (valid != nullptr && valid[r] == 0) {
      std::fill_n(to + r * columns, columns, T{0.0f});
      continue;
    }
    for_each_run(columns, [&](int64_t c, auto lanes) { write(r * columns + c, c, lanes); });
  }
}

template <typename T>
int64_t moments(const BatchNormForward<T>& p, int64_t begin, int64_t end, float* mean,
                float* squares) {
  std::fill_n(mean, p.columns, 0.0f);
  std::fill_n(squares, p.columns, 0.0f);
  int64_t count = 0;
  for_each_valid(p.valid, begin, end, [&](int64_t r) {
    ++count;
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const Floats x = load_lanes(lanes, p.x + r * p.columns + c);
      store_lanes(mean + c, lanes, load_lanes(lanes, mean + c) + x);
    });
  });
  const float total = static_cast<float>(std::max<int64_t>(1, count));
  for (int64_t c = 0; c < p.columns; ++c) mean[c] /= total;
  for_each_valid(p.valid, begin, end, [&](int64_t r) {
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const Floats x = load_lanes(lanes, p.x + r * p.columns + c);
      const Floats away = x - load_lanes(lanes, mean + c);
      store_lanes(squares + c, lanes, multiply_add(away, away, load_lanes(lanes, squares + c)));
    });
  });
  return count;
}

template <typename T>
void forward(const BatchNormForward<T>& p, int64_t begin, int64_t end, const float* slope) {
  write_rows(p.valid, begin, end, p.columns, p.y, [&](int64_t n, int64_t c, auto lanes) {
    const Floats away = load_lanes(lanes, p.x + n) - load_lanes(lanes, p.mean + c);
    store_lanes(p.y + n, lanes,
                multiply_add(away, load_lanes(lanes, slope + c), load_lanes(lanes, p.beta + c)));
  });
}

template <typename T>
void sums_of_slice(const BatchNormBackward<T>& p, int64_t begin, int64_t end, float* products,
                   float* sums) {
  std::fill_n(products, p.columns, 0.0f);
  std::fill_n(sums, p.columns, 0.0f);
  for_each_valid(p.valid, begin, end, [&](int64_t r) {
    for_each_run(p.columns, [&](int64_t c, auto lanes) {
      const int64_t n = r * p.columns + c;
      const Floats grad = load_lanes(lanes, p.grad + n);
      const Floats away = load_lanes(lanes, p.x + n) - load_lanes(lanes, p.mean + c);
      store_lanes(products + c, lanes, multiply_add(grad, away, load_lanes(lanes, products + c)));
      store_lanes(sums + c, lanes, load_lanes(lanes, sums + c) + grad);
    });
  });
}

template <typename T>
void backward(const BatchNormBackward<T>& p, int64_t begin, int64_t end, const float* of_grad,
              const float* of_x, const float* constant) {
  write_rows(p.valid, begin, end, p.columns, p.dx, [&](int64_t n, int64_t c, auto lanes) {
    const Floats away = load_lanes(lanes, p.x + n) - load_lanes(lanes, p.mean + c);
    const Floats rest =
        multiply_add(away, load_lanes(lanes, of_x + c), load_lanes(lanes, constant + c));
    store_lanes(p.dx + n, lanes,
                multiply_add(load_lanes(lanes, p.grad + n), load_lanes(lanes, of_grad + c), rest));
  });
}

}  // namespace

template <typename T>
BatchNormPasses<T> batch_norm_passes() {
  return {moments<T>, forward<T>, sums_of_slice<T>, backward<T>};
}

template BatchNormPasses<float> batch_norm_passes();
template BatchNormPasses<Bf16> batch_norm_passes();

}  // namespace lra::kernels::LRA_ISA
