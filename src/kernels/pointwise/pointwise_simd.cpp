// Elementwise passes, sixteen elements at a time; one call of the counter generator decides a group
// of 128 elements.
#include "base/parallel.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/pointwise_instances.h"
#include "kernels/simd/gelu.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Calls body(n, lanes, factor) for each run of sixteen elements from n on; `lanes` are those that
// exist, `factor` is 0 for dropped ones and 1 / (1 - rate) for kept ones. The array is cut at
// whole rows of kDropoutRowLength, which are whole groups.
template <bool kDropout, typename F>
void for_each_group(int64_t begin, int64_t end, const Dropout& dropout, const F& body) {
  const Floats scale = broadcast(dropout_scale(dropout.rate));
  const uint32_t threshold = dropout_threshold(dropout.rate);
  uint16_t kept[kDropoutGroupVectors];
  for (int64_t first = begin; first < end; first += kDropoutGroup) {
    if constexpr (kDropout) {
      dropout_keeps(dropout.key, threshold, 0,
                    static_cast<uint32_t>(dropout.first_row + first / kDropoutRowLength),
                    first % kDropoutRowLength / kDropoutGroup, kept);
    }
    for_each_run(std::min(kDropoutGroup, end - first), [&](int64_t n, auto lanes) {
      if constexpr (kDropout) {
        body(first + n, lanes, keep(kept[n / kLanes], scale));
      } else {
        body(first + n, lanes, broadcast(1.0f));
      }
    });
  }
}

template <typename F>
void for_each_vector(int64_t count, const Dropout& dropout, const F& body) {
  check_dropout(dropout);
  const int64_t rows = (count + kDropoutRowLength - 1) / kDropoutRowLength;
  constexpr int64_t kRowsAtLeast = 16;  // 64 KiB an array: far more than it costs to wake a thread
  parallel_ranges(rows, kRowsAtLeast, [&](int64_t first_row, int64_t end_row) {
    const int64_t begin = first_row * kDropoutRowLength;
    const int64_t end = std::min(count, end_row * kDropoutRowLength);
    if (dropout_threshold(dropout.rate) == 0) {
      for_each_group<false>(begin, end, dropout, body);
    } else {
      for_each_group<true>(begin, end, dropout, body);
    }
  });
}

}  // namespace

template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, auto lanes, Floats factor) {
    const Floats value = load_lanes(lanes, x + n);
    const Floats gelu = value * gelu_gate(value).value;
    store_lanes(y + n, lanes, gelu * factor);
  });
}

template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, auto lanes, Floats factor) {
    const Floats value = load_lanes(lanes, x + n);
    const Gate gate = gelu_gate(value);
    const Floats grad = load_lanes(lanes, dy + n) * factor;
    store_lanes(dx + n, lanes, grad * gelu_derivative(gate));
    if (y) {
      store_lanes(y + n, lanes, value * gate.value * factor);
    }
  });
}

template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, auto lanes, Floats factor) {
    const Floats sum =
        multiply_add(load_lanes(lanes, x + n), factor, load_lanes(lanes, residual + n));
    store_lanes(y + n, lanes, sum);
  });
}

template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, auto lanes, Floats factor) {
    store_lanes(y + n, lanes, load_lanes(lanes, x + n) * factor);
  });
}

LRA_INSTANTIATE_POINTWISE(float)
LRA_INSTANTIATE_POINTWISE(Bf16)

}  // namespace lra::kernels::LRA_ISA
