#include "kernels/pointwise/gate.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

// sigmoid(x), and 1 - sigmoid(x) without the cancellation of that difference. Beyond 87 a gate is
// open or closed to 1e-37; NaN stays NaN.
struct Sigmoid {
  [[gnu::always_inline]] explicit Sigmoid(Floats x) {
    x = min(broadcast(87.0f), max(broadcast(-87.0f), x));
    const Floats power = exp2(x * broadcast(-1.44269504088896f)), one = broadcast(1.0f);
    open = one / (one + power);
    closed = power * open;
  }
  Floats open, closed;
};

template <typename T>
void forward(const Gate<T>& p, int64_t begin, int64_t end, T* y) {
  for (int64_t r = begin; r < end; ++r) {
    const T *value = p.value + r * p.value_stride, *gate = p.gate + r * p.gate_stride;
    for_each_run(p.columns, [&](int64_t n, auto lanes) {
      const Sigmoid sigmoid(load_lanes(lanes, gate + n));
      store_lanes(y + r * p.columns + n, lanes, load_lanes(lanes, value + n) * sigmoid.open);
    });
  }
}

template <typename T>
void backward(const Gate<T>& p, int64_t begin, int64_t end, const T* grad, T* grad_value,
              T* grad_gate) {
  for (int64_t r = begin; r < end; ++r) {
    const T *value = p.value + r * p.value_stride, *gate = p.gate + r * p.gate_stride;
    for_each_run(p.columns, [&](int64_t n, auto lanes) {
      const Sigmoid sigmoid(load_lanes(lanes, gate + n));
      const Floats through = load_lanes(lanes, grad + r * p.columns + n) * sigmoid.open;
      store_lanes(grad_value + r * p.value_stride + n, lanes, through);
      store_lanes(grad_gate + r * p.gate_stride + n, lanes,
                  through * load_lanes(lanes, value + n) * sigmoid.closed);
    });
  }
}

}  // namespace

template <typename T>
GateParts<T> gate_parts() {
  return {forward<T>, backward<T>};
}
template GateParts<float> gate_parts();
template GateParts<Bf16> gate_parts();

}  // namespace lra::kernels::LRA_ISA
