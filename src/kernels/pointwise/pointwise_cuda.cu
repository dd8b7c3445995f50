// Elementwise passes on a CUDA device: kernels/pointwise/pointwise.h.
//
// A thread takes eight pairs of neighbors of a group of 128 elements, sixteen apart: those of one
// place share a block of random numbers (base/rng.h), and eight threads read sixteen neighbors.
#include "base/rng.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/vectors.h"
#include "kernels/cuda/warp.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 256, kGroup = 128, kApart = 16, kPairs = kGroup / kApart;
constexpr int kLanes = kThreads / kPairs;  // rows that a block takes at a time to sum columns
constexpr int64_t kSumRows = 512;          // of a block
constexpr float kSqrt2OverPi = 0.7978845608028654f, kCubic = 0.044715f;

struct Decisions {
  uint64_t key = 0;
  int64_t first_row = 0;
  uint32_t threshold = 0;
  float scale = 1;
};

Decisions decisions_of(const Dropout& dropout) {
  check_dropout(dropout);
  return {dropout.key, dropout.first_row, dropout_threshold(dropout.rate),
          dropout_scale(dropout.rate)};
}

// With u = sqrt(2 / pi) (x + 0.044715 x^3), 0.5 (1 + tanh u) is 1 / (1 + e^-2u).
__device__ inline float exp_minus_2u(float x) {
  constexpr float kLog2E = 1.4426950408889634f;
  return fast_exp2(-2 * kLog2E * kSqrt2OverPi * (x + kCubic * x * x * x));
}

__device__ inline float gelu(float x) { return fast_divide(x, 1 + exp_minus_2u(x)); }

__device__ inline float gelu_derivative(float x) {
  // 0 or 1 beyond; the cube of a large x would overflow. NaN stays NaN.
  x = x < -10 ? -10.0f : x > 10 ? 10.0f : x;
  const float power = exp_minus_2u(x), share = fast_divide(1, 1 + power);
  const float du = kSqrt2OverPi * (1 + 3 * kCubic * x * x);
  return share * (1 + 2 * x * du * (power * share));
}

// The passes: the number of arrays that a pass reads and writes, and its function of one element of
// each and the dropout factor.
struct GeluDropout {
  static constexpr int kIn = 1, kOut = 1;
  __device__ static void compute(const float* in, float factor, float* out) {
    out[0] = factor * gelu(in[0]);
  }
};

struct GeluDropoutBackward {  // x, dy -> dx
  static constexpr int kIn = 2, kOut = 1;
  __device__ static void compute(const float* in, float factor, float* out) {
    out[0] = factor * in[1] * gelu_derivative(in[0]);
  }
};

struct GeluDropoutAgain {  // x, dy -> dx, y
  static constexpr int kIn = 2, kOut = 2;
  __device__ static void compute(const float* in, float factor, float* out) {
    GeluDropoutBackward::compute(in, factor, out);
    GeluDropout::compute(in, factor, out + 1);
  }
};

struct DropoutAdd {  // residual, x -> y
  static constexpr int kIn = 2, kOut = 1;
  __device__ static void compute(const float* in, float factor, float* out) {
    out[0] = in[0] + factor * in[1];
  }
};

struct ApplyDropout {
  static constexpr int kIn = 1, kOut = 1;
  __device__ static void compute(const float* in, float factor, float* out) {
    out[0] = factor * in[0];
  }
};

template <typename T, typename Pass>
struct Arrays {
  const T* in[Pass::kIn];
  T* out[Pass::kOut];

  bool take_pairs() const {
    bool pairs = true;
    for (const T* array : in) pairs = pairs && takes_vectors<2>(array);
    for (const T* array : out) pairs = pairs && takes_vectors<2>(array);
    return pairs;
  }
};

__device__ inline float factor_of(const Decisions& d, uint32_t word, int n) {
  const uint32_t value = n % 2 == 0 ? word & 0xFFFF : word >> 16;
  return d.threshold == 0 ? 1.0f : value < d.threshold ? 0.0f : d.scale;
}

// Single elements: at the end of the arrays, or for unaligned arrays.
template <typename T, typename Pass>
__device__ void take_elements(int64_t count, int64_t first, const Decisions& d,
                              const PhiloxBlock (&random)[2], const Arrays<T, Pass>& arrays) {
#pragma unroll
  for (int n = 0; n < 2 * kPairs; ++n) {
    const int64_t index = first + n / 2 * kApart + n % 2;
    if (index >= count) continue;
    float in[Pass::kIn], out[Pass::kOut];
    for (int i = 0; i < Pass::kIn; ++i) in[i] = arrays.in[i][index];
    Pass::compute(in, factor_of(d, random[n % 2][n / 4], n / 2), out);
    for (int i = 0; i < Pass::kOut; ++i) arrays.out[i][index] = T(out[i]);
  }
}

// All loads are issued before the first value is needed. Adds what is written to the first array to
// `sums`, unless that is null.
template <typename T, typename Pass>
__device__ inline void take_pairs(int64_t first, const Decisions& d, const PhiloxBlock (&random)[2],
                                  const Arrays<T, Pass>& arrays, float (*sums)[2] = nullptr) {
  Vector<T, 2> loaded[Pass::kIn][kPairs];
#pragma unroll
  for (int n = 0; n < kPairs; ++n) {
    for (int i = 0; i < Pass::kIn; ++i) {
      loaded[i][n] = load_vector<2>(arrays.in[i] + first + n * kApart);
    }
  }
#pragma unroll
  for (int n = 0; n < kPairs; ++n) {
    float results[Pass::kOut][2];
    for (int side = 0; side < 2; ++side) {
      float in[Pass::kIn], out[Pass::kOut];
      for (int i = 0; i < Pass::kIn; ++i) in[i] = loaded[i][n].values[side];
      Pass::compute(in, factor_of(d, random[side][n / 2], n), out);
      for (int i = 0; i < Pass::kOut; ++i) results[i][side] = out[i];
      if (sums != nullptr) sums[n][side] += out[0];
    }
    for (int i = 0; i < Pass::kOut; ++i) {
      store_floats(arrays.out[i] + first + n * kApart, results[i]);
    }
  }
}

// The random numbers of the elements of a thread.
__device__ inline void draw(const Decisions& d, int64_t group, int place,
                            PhiloxBlock (&random)[2]) {
  if (d.threshold == 0) return;
  constexpr int64_t kGroupsOfRow = kDropoutRowLength / kGroup;
  const auto row = static_cast<uint32_t>(d.first_row + group / kGroupsOfRow);
  const auto counter = static_cast<uint32_t>(group % kGroupsOfRow * kApart + place);
  for (uint32_t side = 0; side < 2; ++side) {
    random[side] = philox4x32({counter + side, row, 0, 0}, d.key);
  }
}

template <typename T, typename Pass>
__global__ void elements_kernel(int64_t count, Decisions d, Arrays<T, Pass> arrays,
                                bool begin_with_pairs) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t group = thread / kPairs;
  const int place = 2 * static_cast<int>(thread % kPairs);
  const int64_t first = group * kGroup + place;
  if (first >= count) return;
  PhiloxBlock random[2] = {};
  draw(d, group, place, random);
  if (begin_with_pairs && (group + 1) * kGroup <= count) {
    take_pairs(first, d, random, arrays);
  } else {
    take_elements(count, first, d, random, arrays);
  }
}

// A block takes a group of columns in a run of kSumRows rows; totals [runs, columns].
template <typename T, typename Pass>
__global__ void columns_kernel(int64_t rows, int64_t columns, Decisions d, Arrays<T, Pass> arrays,
                               float* totals) {
  const int64_t groups = columns / kGroup, run = blockIdx.x / groups,
                group_of_row = blockIdx.x % groups;
  const int lane = static_cast<int>(threadIdx.x) / kPairs;
  const int place = 2 * (static_cast<int>(threadIdx.x) % kPairs);
  const int64_t end = (run + 1) * kSumRows < rows ? (run + 1) * kSumRows : rows;
  float sums[kPairs][2] = {};
  for (int64_t row = run * kSumRows + lane; row < end; row += kLanes) {
    const int64_t group = row * groups + group_of_row;
    PhiloxBlock random[2] = {};
    draw(d, group, place, random);
    take_pairs(group * kGroup + place, d, random, arrays, sums);
  }
  auto* shared = reinterpret_cast<float*>(dynamic_shared());  // [kLanes, kGroup]
#pragma unroll
  for (int n = 0; n < 2 * kPairs; ++n) {
    shared[lane * kGroup + n / 2 * kApart + place + n % 2] = sums[n / 2][n % 2];
  }
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x);
  if (column >= kGroup) return;
  float sum = 0;
  for (int other = 0; other < kLanes; ++other) sum += shared[other * kGroup + column];
  totals[run * columns + group_of_row * kGroup + column] = sum;
}

template <typename Pass, typename T>
void run(int64_t count, const Dropout& dropout, const Arrays<T, Pass>& arrays, Stream stream) {
  launch(elements_kernel<T, Pass>, parts_of(parts_of(count, kGroup) * kPairs, kThreads), kThreads,
         0, stream, count, decisions_of(dropout), arrays, arrays.take_pairs());
}

}  // namespace

template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout, Stream stream) {
  run<GeluDropout, T>(count, dropout, {{x}, {y}}, stream);
}

template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout, Stream stream) {
  if (y == nullptr) {
    run<GeluDropoutBackward, T>(count, dropout, {{x, dy}, {dx}}, stream);
  } else {
    run<GeluDropoutAgain, T>(count, dropout, {{x, dy}, {dx, y}}, stream);
  }
}

template <typename T>
bool takes_gelu_sums(int64_t columns, const T* x, const T* dy) {
  return columns > 0 && columns % kGroup == 0 && takes_vectors<2>(x) && takes_vectors<2>(dy);
}

int64_t gelu_sums(int64_t rows) { return parts_of(rows, kSumRows); }

template <typename T>
void gelu_dropout_backward_and_sums(int64_t rows, int64_t columns, const T* x, const T* dy, T* dx,
                                    T* y, float* sums, const Dropout& dropout, Stream stream) {
  const Arrays<T, GeluDropoutAgain> arrays{{x, dy}, {dx, y}};
  LRA_CHECK(takes_gelu_sums(columns, x, dy) && arrays.take_pairs());
  launch(columns_kernel<T, GeluDropoutAgain>, gelu_sums(rows) * (columns / kGroup), kThreads,
         sizeof(float) * kLanes * kGroup, stream, rows, columns, decisions_of(dropout), arrays,
         sums);
}

template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout,
                 Stream stream) {
  run<DropoutAdd, T>(count, dropout, {{residual, x}, {y}}, stream);
}

template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout, Stream stream) {
  run<ApplyDropout, T>(count, dropout, {{x}, {y}}, stream);
}

#define LRA_INSTANTIATE(T)                                                                      \
  template void gelu_dropout<T>(int64_t, const T*, T*, const Dropout&, Stream);                 \
  template void gelu_dropout_backward<T>(int64_t, const T*, const T*, T*, T*, const Dropout&,   \
                                         Stream);                                               \
  template bool takes_gelu_sums<T>(int64_t, const T*, const T*);                                \
  template void gelu_dropout_backward_and_sums<T>(int64_t, int64_t, const T*, const T*, T*, T*, \
                                                  float*, const Dropout&, Stream);              \
  template void dropout_add<T>(int64_t, const T*, const T*, T*, const Dropout&, Stream);        \
  template void apply_dropout<T>(int64_t, const T*, T*, const Dropout&, Stream);
LRA_INSTANTIATE(float)
LRA_INSTANTIATE(Bf16)
#undef LRA_INSTANTIATE

}  // namespace lra::kernels::cuda
