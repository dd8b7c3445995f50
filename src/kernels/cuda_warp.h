// Warps and tensor cores: what is written in the instructions of the device. Included by *.cu files
// alone; tests/simulated_cuda has the same functions for the CPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace lra::kernels::cuda {

// The dynamic shared memory of the block, 16-byte aligned.
__device__ inline unsigned char* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char memory[];
  return memory;
}

// Two values rounded to bfloat16, `low` in the lower half.
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// c += a b on matrices spread over the warp (PTX ISA, mma.m16n8k16 and mma.m16n8k8): with g = lane
// / 4 and t = lane % 4, c holds (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of 16 x 8.

// a: pairs of columns from (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8) of 16 x 16; b: pairs
// of rows from (2t, g), (2t + 8, g) of 16 x 8.
__device__ inline void multiply_bf16(float (&c)[4], const uint32_t (&a)[4],
                                     const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) of 16 x 8; b: (t, g), (t + 4, g) of 8 x 8; of
// both the upper 19 bits count.
__device__ inline void multiply_tf32(float (&c)[4], const uint32_t (&a)[4],
                                     const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace lra::kernels::cuda
