#include "kernels/pointwise/gate.h"
#include "kernels/simd/sigmoid.h"

namespace lra::kernels::LRA_ISA {
namespace {

template <typename T, typename L>
[[gnu::always_inline]] inline Floats values(const Gate<T>& p, int64_t at, L lanes) {
  return p.value == nullptr ? broadcast(1.0f) : load_lanes(lanes, p.value + at);
}

template <bool kSilu, typename T>
void forward_rows(const Gate<T>& p, int64_t begin, int64_t end, T* y) {
  for (int64_t r = begin; r < end; ++r) {
    for_each_run(p.columns, [&](int64_t n, auto lanes) {
      const Floats gate = load_lanes(lanes, p.gate + r * p.gate_stride + n);
      Floats value = values(p, r * p.value_stride + n, lanes);
      if constexpr (kSilu) value = value * gate;
      store_lanes(y + r * p.columns + n, lanes, value * Sigmoid(gate).open);
    });
  }
}

template <bool kSilu, typename T>
void backward_rows(const Gate<T>& p, int64_t begin, int64_t end, const T* grad,
                   const GateGradients<T>& to) {
  for (int64_t r = begin; r < end; ++r) {
    for_each_run(p.columns, [&](int64_t n, auto lanes) {
      const Floats gate = load_lanes(lanes, p.gate + r * p.gate_stride + n);
      const Sigmoid sigmoid(gate);
      const Floats through = load_lanes(lanes, grad + r * p.columns + n) * sigmoid.open;
      Floats slope = sigmoid.closed, of_value = through;
      if constexpr (kSilu) {
        slope = multiply_add(gate, sigmoid.closed, broadcast(1.0f));
        of_value = through * gate;
      }
      const Floats value = values(p, r * p.value_stride + n, lanes);
      store_lanes(to.gate + r * to.gate_stride + n, lanes, through * value * slope);
      if (p.value != nullptr) store_lanes(to.value + r * to.value_stride + n, lanes, of_value);
    });
  }
}

template <typename T>
void forward(const Gate<T>& p, int64_t begin, int64_t end, T* y) {
  p.is_silu ? forward_rows<true>(p, begin, end, y) : forward_rows<false>(p, begin, end, y);
}

template <typename T>
void backward(const Gate<T>& p, int64_t begin, int64_t end, const T* grad,
              const GateGradients<T>& to) {
  p.is_silu ? backward_rows<true>(p, begin, end, grad, to)
            : backward_rows<false>(p, begin, end, grad, to);
}

}  // namespace

template <typename T>
GateParts<T> gate_parts() {
  return {forward<T>, backward<T>};
}
template GateParts<float> gate_parts();
template GateParts<Bf16> gate_parts();

}  // namespace lra::kernels::LRA_ISA
