#include "kernels/pointwise/gate.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"

namespace lra::kernels {
namespace ref {
namespace {

template <typename T>
void forward(const Gate<T>& p, int64_t begin, int64_t end, T* y) {
  using W = Wide<T>;
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < p.columns; ++c) {
      const W gate = p.gate[r * p.gate_stride + c];
      const W value = p.value == nullptr ? W{1} : W{p.value[r * p.value_stride + c]};
      y[r * p.columns + c] = (p.is_silu ? value * gate : value) / (1 + std::exp(-gate));
    }
  }
}

template <typename T>
void backward(const Gate<T>& p, int64_t begin, int64_t end, const T* grad,
              const GateGradients<T>& to) {
  using W = Wide<T>;
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < p.columns; ++c) {
      const W gate = p.gate[r * p.gate_stride + c];
      const W value = p.value == nullptr ? W{1} : W{p.value[r * p.value_stride + c]};
      const W open = 1 / (1 + std::exp(-gate)), closed = 1 / (1 + std::exp(gate));
      const W g = grad[r * p.columns + c];
      const W factor = p.is_silu ? gate * open : open;
      const W slope = p.is_silu ? open * (1 + gate * closed) : open * closed;
      if (p.value != nullptr) to.value[r * to.value_stride + c] = g * factor;
      to.gate[r * to.gate_stride + c] = g * value * slope;
    }
  }
}

}  // namespace

template <typename T>
GateParts<T> gate_parts() {
  return {forward<T>, backward<T>};
}
}  // namespace ref

namespace {

template <typename T>
GateParts<T> choose_gate_parts() {
  LRA_RETURN_BEST(T, Op::kGate, gate_parts<T>());
}

// Rows that are worth waking a thread for.
template <typename T>
int64_t gate_grain(const Gate<T>& p) {
  return 1 + (1 << 14) / std::max<int64_t>(1, p.columns);
}

}  // namespace

template <typename T>
void gate_forward(const Gate<T>& p, T* y) {
  const GateParts<T> parts = choose_gate_parts<T>();
  parallel_ranges(p.rows, gate_grain(p),
                  [&](int64_t begin, int64_t end) { parts.forward(p, begin, end, y); });
}

template <typename T>
void gate_backward(const Gate<T>& p, const T* grad, const GateGradients<T>& to) {
  const GateParts<T> parts = choose_gate_parts<T>();
  parallel_ranges(p.rows, gate_grain(p),
                  [&](int64_t begin, int64_t end) { parts.backward(p, begin, end, grad, to); });
}

template void gate_forward(const Gate<float>&, float*);
template void gate_forward(const Gate<Bf16>&, Bf16*);
template void gate_forward(const Gate<double>&, double*);
template void gate_backward(const Gate<float>&, const float*, const GateGradients<float>&);
template void gate_backward(const Gate<Bf16>&, const Bf16*, const GateGradients<Bf16>&);
template void gate_backward(const Gate<double>&, const double*, const GateGradients<double>&);

}  // namespace lra::kernels
