// Elementwise passes, sixteen elements at a time. One call of the counter generator decides a group
// of 128 elements.
#include "base/parallel.h"
#include "kernels/pointwise.h"
#include "kernels/pointwise_instances.h"
#include "kernels/simd.h"

namespace lra::kernels::avx512 {
namespace {

// Calls body(n, lanes, factor) for each run of sixteen elements from n on; `lanes` are those that
// exist, `factor` is 0 for dropped ones and 1 / (1 - rate) for kept ones. The array is cut at
// whole rows of kDropoutRowLength, which are whole groups.
template <bool kDropout, typename F>
void for_each_group(int64_t begin, int64_t end, const Dropout& dropout, const F& body) {
  const __m512 scale = _mm512_set1_ps(dropout_scale(dropout.rate));
  const uint32_t threshold = dropout_threshold(dropout.rate);
  uint16_t kept[kDropoutGroupVectors];
  for (int64_t first = begin; first < end; first += kDropoutGroup) {
    if constexpr (kDropout) {
      dropout_keeps(dropout.key, threshold, 0,
                    static_cast<uint32_t>(dropout.first_row + first / kDropoutRowLength),
                    first % kDropoutRowLength / kDropoutGroup, kept);
    }
    for (int64_t v = 0; v < kDropoutGroupVectors && first + v * kLanes < end; ++v) {
      const int64_t n = first + v * kLanes;
      const __mmask16 lanes = lanes_between(0, end - n);
      if constexpr (kDropout) {
        body(n, lanes, _mm512_maskz_mov_ps(kept[v], scale));
      } else {
        body(n, lanes, _mm512_set1_ps(1.0f));
      }
    }
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

constexpr float kSqrt2OverPi = 0.797884560802865f;
constexpr float kCubic = 0.044715f;

// (1 + tanh(u)) / 2 = 1 / (1 + 2^(-2 u log2 e)) for u = sqrt(2 / pi) (x + 0.044715 x^3).
struct Gate {
  __m512 value;
  __m512 rest;  // 1 - value, without the cancellation of that difference
  __m512 x;     // cut to [-10, 10], beyond which the gate is 0 or 1 to 1e-37; NaN stays NaN
};

Gate gelu_gate(__m512 x) {
  x = _mm512_min_ps(_mm512_set1_ps(10.0f), _mm512_max_ps(_mm512_set1_ps(-10.0f), x));
  constexpr float kMinus2Log2e = -2 * 1.44269504088896f;
  const __m512 square = _mm512_mul_ps(x, x);
  const __m512 u =
      _mm512_mul_ps(x, _mm512_fmadd_ps(square, _mm512_set1_ps(kMinus2Log2e * kSqrt2OverPi * kCubic),
                                       _mm512_set1_ps(kMinus2Log2e * kSqrt2OverPi)));
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 power = exp2_ps(u);
  const __m512 value = _mm512_div_ps(one, _mm512_add_ps(one, power));
  return {value, _mm512_mul_ps(power, value), x};
}

// g + x g (1 - g) 2 u'(x)
__m512 gelu_derivative(const Gate& of_x) {
  const auto [gate, rest, x] = of_x;
  const __m512 square = _mm512_mul_ps(x, x);
  const __m512 two_du = _mm512_fmadd_ps(square, _mm512_set1_ps(6 * kSqrt2OverPi * kCubic),
                                        _mm512_set1_ps(2 * kSqrt2OverPi));
  const __m512 slope = _mm512_mul_ps(gate, rest);
  return _mm512_fmadd_ps(_mm512_mul_ps(x, slope), two_du, gate);
}

}  // namespace

template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, __mmask16 lanes, __m512 factor) {
    const __m512 value = load_lanes(lanes, x + n);
    const __m512 gelu = _mm512_mul_ps(value, gelu_gate(value).value);
    store_lanes(y + n, lanes, _mm512_mul_ps(gelu, factor));
  });
}

template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, __mmask16 lanes, __m512 factor) {
    const __m512 value = load_lanes(lanes, x + n);
    const Gate gate = gelu_gate(value);
    const __m512 grad = _mm512_mul_ps(load_lanes(lanes, dy + n), factor);
    store_lanes(dx + n, lanes, _mm512_mul_ps(grad, gelu_derivative(gate)));
    if (y) {
      store_lanes(y + n, lanes, _mm512_mul_ps(_mm512_mul_ps(value, gate.value), factor));
    }
  });
}

template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, __mmask16 lanes, __m512 factor) {
    const __m512 sum =
        _mm512_fmadd_ps(load_lanes(lanes, x + n), factor, load_lanes(lanes, residual + n));
    store_lanes(y + n, lanes, sum);
  });
}

template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout) {
  for_each_vector(count, dropout, [&](int64_t n, __mmask16 lanes, __m512 factor) {
    store_lanes(y + n, lanes, _mm512_mul_ps(load_lanes(lanes, x + n), factor));
  });
}

LRA_INSTANTIATE_POINTWISE(float)
LRA_INSTANTIATE_POINTWISE(Bf16)

}  // namespace lra::kernels::avx512
