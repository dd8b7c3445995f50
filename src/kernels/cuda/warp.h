// Warps and tensor cores: code in the instructions of the device. Included only by *.cu files;
// tests/simulated_cuda has the same functions for the CPU.
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

// Two or four 8 x 8 matrices of 16-bit numbers from shared memory (PTX ISA, ldmatrix): lane n gives
// the address of row n % 8 of matrix n / 8, 16-byte aligned; of two, lanes 0 to 15. to[m] holds the
// pair (g, 2t), (g, 2t + 1) of matrix m, transposed (2t, g), (2t + 1, g); the first in the lower
// half.
__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}
__device__ inline void load_matrices(uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}
__device__ inline void load_matrices_transposed(uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}

__device__ inline void load_matrices(uint32_t (&to)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(shared_address(row)));
}
__device__ inline void load_matrices_transposed(uint32_t (&to)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(shared_address(row)));
}

// Begins to copy 16 bytes to shared memory, zeros when not `inside`; both addresses are 16-byte
// aligned. They are there for this thread after wait_for_copies().
__device__ inline void copy_16_bytes(void* to_shared, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to_shared)),
               "l"(from), "r"(inside ? 16 : 0)
               : "memory");
}
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// 2^x with the hardware's error of 2 units in the last place; results below the smallest normal
// number are 0.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// a / b with the hardware's error of 2 units in the last place; 0 for a finite a and |b| above
// 2^126.
__device__ inline float fast_divide(float a, float b) { return __fdividef(a, b); }

}  // namespace lra::kernels::cuda
