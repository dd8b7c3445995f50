// Gates on a CUDA device: kernels/pointwise/gate.h. A thread takes eight neighbors where rows allow
// it.
#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vectors.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kGateThreads = 256, kNeighbors = 8;

// sigmoid(x) and 1 - sigmoid(x), both to the last places.
struct Sigmoid {
  __device__ explicit Sigmoid(float x) {
    const float power = fast_exp2(-1.4426950408889634f * fabsf(x));
    const float larger = fast_divide(1, 1 + power), smaller = power * larger;
    open = x < 0 ? smaller : larger;
    closed = x < 0 ? larger : smaller;
  }
  float open, closed;
};

// The place of a thread's first element in rows of a width.
struct Place {
  int64_t row, column;
  __device__ int64_t in(int64_t stride) const { return row * stride + column; }
};
template <int N>
__device__ inline bool find_place(int64_t rows, int64_t columns, Place& place) {
  const int64_t index = int64_t{blockIdx.x} * kGateThreads + threadIdx.x, of_row = columns / N;
  place = {index / of_row, index % of_row * N};
  return place.row < rows;
}

// Without values they are 1.
template <int N, typename T>
__device__ inline void load_values(const Gate<T>& p, const Place& place, float (&values)[N]) {
  if (p.value != nullptr) return load_floats(values, p.value + place.in(p.value_stride));
#pragma unroll
  for (float& value : values) value = 1;
}

template <typename T, int N>
__global__ void gate_forward_kernel(Gate<T> p, T* y) {
  Place place;
  if (!find_place<N>(p.rows, p.columns, place)) return;
  float gates[N], values[N];
  load_floats(gates, p.gate + place.in(p.gate_stride));
  load_values(p, place, values);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    values[n] *= Sigmoid(gates[n]).open * (p.is_silu ? gates[n] : 1);
  }
  store_floats(y + place.in(p.columns), values);
}

template <typename T, int N>
__global__ void gate_backward_kernel(Gate<T> p, const T* grad, GateGradients<T> to) {
  Place place;
  if (!find_place<N>(p.rows, p.columns, place)) return;
  float gates[N], values[N], grads[N];
  load_floats(gates, p.gate + place.in(p.gate_stride));
  load_values(p, place, values);
  load_floats(grads, grad + place.in(p.columns));
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const Sigmoid sigmoid(gates[n]);
    const float of_value = grads[n] * sigmoid.open;
    const float slope = p.is_silu ? 1 + gates[n] * sigmoid.closed : sigmoid.closed;
    gates[n] = p.is_silu ? of_value * gates[n] : of_value;
    values[n] *= of_value * slope;
  }
  if (to.value != nullptr) store_floats(to.value + place.in(to.value_stride), gates);
  store_floats(to.gate + place.in(to.gate_stride), values);
}

// Calls use(N) with as many neighbors as all rows can be read in.
template <typename T, typename F>
void with_neighbors(const Gate<T>& p, std::initializer_list<const T*> arrays,
                    std::initializer_list<int64_t> strides, const F& use) {
  bool fits = p.columns % kNeighbors == 0;
  for (const int64_t stride : strides) fits = fits && stride % kNeighbors == 0;
  for (const T* array : arrays) fits = fits && takes_vectors<kNeighbors>(array);
  if (fits) return use(std::integral_constant<int, kNeighbors>());
  use(std::integral_constant<int, 1>());
}

}  // namespace

template <typename T>
void gate_forward(const Gate<T>& p, T* y, Stream stream) {
  with_neighbors<T>(p, {p.value, p.gate, y}, {p.value_stride, p.gate_stride}, [&](auto n) {
    launch(gate_forward_kernel<T, n>, parts_of(p.rows * (p.columns / n), kGateThreads),
           kGateThreads, 0, stream, p, y);
  });
}

template <typename T>
void gate_backward(const Gate<T>& p, const T* grad, const GateGradients<T>& to, Stream stream) {
  with_neighbors<T>(p, {p.value, p.gate, grad, to.value, to.gate},
                    {p.value_stride, p.gate_stride, to.value_stride, to.gate_stride}, [&](auto n) {
                      launch(gate_backward_kernel<T, n>,
                             parts_of(p.rows * (p.columns / n), kGateThreads), kGateThreads, 0,
                             stream, p, grad, to);
                    });
}

template void gate_forward(const Gate<float>&, float*, Stream);
template void gate_forward(const Gate<Bf16>&, Bf16*, Stream);
template void gate_backward(const Gate<float>&, const float*, const GateGradients<float>&, Stream);
template void gate_backward(const Gate<Bf16>&, const Bf16*, const GateGradients<Bf16>&, Stream);

}  // namespace lra::kernels::cuda
