// Stands in for src/kernels/cuda/warp.h: the same functions, computed from what all lanes of the
// warp give.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda_runtime.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels::cuda {

inline unsigned char* dynamic_shared() { return simulated::shared_memory; }

inline uint32_t pack_bf16(float low, float high) {
  return uint32_t{Bf16(high).bits} << 16 | Bf16(low).bits;
}

namespace simulated_mma {

struct Lane {
  float* c;
  const uint32_t *a, *b;
};

inline float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Element `half` of a pair of bfloat16.
inline float half_of(uint32_t word, int half) {
  return as_float(half == 0 ? word << 16 : word & 0xFFFF0000);
}

inline const Lane& lane(void* const* all, int g, int t) {
  return *static_cast<const Lane*>(all[g * 4 + t]);
}

// c += a b for the matrices a [16, kDepth] and b [kDepth, 8].
template <int kDepth>
void multiply(void* const* all, const float (&a)[16][kDepth], const float (&b)[kDepth][8]) {
  for (int n = 0; n < 4; ++n) {
    for (int g = 0; g < 8; ++g) {
      for (int t = 0; t < 4; ++t) {
        float sum = 0;
        for (int k = 0; k < kDepth; ++k) sum += a[g + n / 2 * 8][k] * b[k][2 * t + n % 2];
        lane(all, g, t).c[n] += sum;
      }
    }
  }
}

}  // namespace simulated_mma

inline void multiply_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  simulated_mma::Lane mine{c, a, b};
  simulated::meet(&mine, [](void* const* all) {
    float a[16][16], b[16][8];
    for (int row = 0; row < 16; ++row) {
      for (int k = 0; k < 16; ++k) {
        const auto& lane = simulated_mma::lane(all, row % 8, k % 8 / 2);
        a[row][k] = simulated_mma::half_of(lane.a[(row >= 8) + 2 * (k >= 8)], k % 2);
      }
    }
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) {
        const auto& lane = simulated_mma::lane(all, column, k % 8 / 2);
        b[k][column] = simulated_mma::half_of(lane.b[k >= 8], k % 2);
      }
    }
    simulated_mma::multiply(all, a, b);
  });
}

inline void multiply_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  simulated_mma::Lane mine{c, a, b};
  simulated::meet(&mine, [](void* const* all) {
    constexpr uint32_t kUpper = 0xFFFFE000;
    float a[16][8], b[8][8];
    for (int k = 0; k < 8; ++k) {
      for (int row = 0; row < 16; ++row) {
        const auto& lane = simulated_mma::lane(all, row % 8, k % 4);
        a[row][k] = simulated_mma::as_float(lane.a[(row >= 8) + 2 * (k >= 4)] & kUpper);
      }
      for (int column = 0; column < 8; ++column) {
        const auto& lane = simulated_mma::lane(all, column, k % 4);
        b[k][column] = simulated_mma::as_float(lane.b[k >= 4] & kUpper);
      }
    }
    simulated_mma::multiply(all, a, b);
  });
}

namespace simulated_mma {

struct Matrices {
  uint32_t* to;
  const void* row;
};

// Every lane's share of the matrices.
template <int kCount, bool kTransposed>
void load(void* const* all) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < kCount; ++m) {
      uint16_t pair[2];
      for (int n = 0; n < 2; ++n) {
        const int row = kTransposed ? lane % 4 * 2 + n : lane / 4;
        const int column = kTransposed ? lane / 4 : lane % 4 * 2 + n;
        const void* from = static_cast<const Matrices*>(all[m * 8 + row])->row;
        std::memcpy(&pair[n], static_cast<const uint16_t*>(from) + column, sizeof(uint16_t));
      }
      static_cast<const Matrices*>(all[lane])->to[m] = uint32_t{pair[1]} << 16 | pair[0];
    }
  }
}

inline void check_aligned(const void* at) {
  if (reinterpret_cast<uintptr_t>(at) % 16 != 0) simulated::fail("an address is not aligned");
}

}  // namespace simulated_mma

template <int kCount>
void load_matrices(uint32_t (&to)[kCount], const void* row) {
  simulated_mma::check_aligned(row);
  simulated_mma::Matrices mine{to, row};
  simulated::meet(&mine, simulated_mma::load<kCount, false>);
}

template <int kCount>
void load_matrices_transposed(uint32_t (&to)[kCount], const void* row) {
  simulated_mma::check_aligned(row);
  simulated_mma::Matrices mine{to, row};
  simulated::meet(&mine, simulated_mma::load<kCount, true>);
}

// Nothing is copied before the thread waits: reading too early shows.
inline void copy_16_bytes(void* to_shared, const void* from, bool inside) {
  simulated_mma::check_aligned(to_shared);
  simulated_mma::check_aligned(from);
  simulated::copy_later(to_shared, inside ? from : nullptr, 16);
}
inline void wait_for_copies() { simulated::copy_now(); }

inline float fast_exp2(float x) { return std::exp2(x); }

inline float fast_divide(float a, float b) {
  return std::isfinite(a) && std::abs(b) > 0x1p126f ? 0 : a / b;
}

}  // namespace lra::kernels::cuda
