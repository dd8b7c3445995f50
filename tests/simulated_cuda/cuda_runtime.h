// The part of CUDA's runtime that our kernels use, computed by the CPU: each thread of a block is a
// fiber, and blocks run one after another. So what kernels compute is tested on machines without a
// GPU, by the tests of the same kernels' references; how fast they are is not.
//
// Stands in for NVIDIA's header of this name when *.cu files are compiled as C++. A barrier that
// some threads of a block do not reach, or another than the others', ends the program.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct alignas(16) uint4 {
  unsigned x = 0, y = 0, z = 0, w = 0;
};

enum cudaError_t { cudaSuccess = 0, cudaErrorNoKernelImageForDevice = 209 };
using cudaStream_t = void*;
inline constexpr int cudaFuncAttributeMaxDynamicSharedMemorySize = 8;

inline constexpr int cudaDevAttrMaxSharedMemoryPerBlockOptin = 97;

inline const char* cudaGetErrorString(cudaError_t) { return "no error"; }
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, int, int) {
  return cudaSuccess;
}

namespace lra::simulated {

// Indices of the running fiber.
struct Place {
  dim3 thread, block;
};
extern Place place;
extern dim3 block_size, grid_size;
extern unsigned char* shared_memory;
extern int most_shared_bytes;  // of a block, as of the Hopper GPUs unless a test says else

// If it is set, launches are reported to it, with their arguments, and compute nothing.
using Arguments = std::span<const std::span<const std::byte>>;
extern void (*observe)(void* kernel, dim3 grid, dim3 block, size_t shared_bytes,
                       Arguments arguments);

// Runs `thread` once for every thread of the grid. Shared memory is filled with NaN before each
// block.
void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread);

void block_barrier();
void warp_barrier();
// Every lane of the warp gives a pointer; `together` is called once, with those of all 32 lanes.
void meet(void* mine, void (*together)(void* const* all));
// Number of threads of the block for which `value` is true.
int block_count(bool value);

// Copies of the current thread, made by copy_now() and not before; `from` null: zeros. A thread
// that ends must have waited for its copies.
void copy_later(void* to, const void* from, size_t bytes);
void copy_now();

[[noreturn]] void fail(const char* what);

template <typename... P, size_t... N>
void call(void (*kernel)(P...), void** arguments, std::index_sequence<N...>) {
  kernel(*static_cast<std::remove_reference_t<P>*>(arguments[N])...);
}

}  // namespace lra::simulated

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, int, int) {
  *value = lra::simulated::most_shared_bytes;
  return cudaSuccess;
}

#define threadIdx (lra::simulated::place.thread)
#define blockIdx (lra::simulated::place.block)
#define blockDim (lra::simulated::block_size)
#define gridDim (lra::simulated::grid_size)

template <typename... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t) {
  if (lra::simulated::observe != nullptr) {
    const std::array<std::span<const std::byte>, sizeof...(P)> bytes = {
        std::span(static_cast<const std::byte*>(*arguments++), sizeof(P))...};
    lra::simulated::observe(reinterpret_cast<void*>(kernel), grid, block, shared_bytes, bytes);
    return cudaSuccess;
  }
  lra::simulated::run(grid, block, shared_bytes, [&] {
    lra::simulated::call(kernel, arguments, std::make_index_sequence<sizeof...(P)>());
  });
  return cudaSuccess;
}

inline void __syncthreads() { lra::simulated::block_barrier(); }
inline void __syncwarp() { lra::simulated::warp_barrier(); }
inline int __syncthreads_count(int value) { return lra::simulated::block_count(value != 0); }

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline void sincospif(float x, float* sine, float* cosine) {
  const double turned = M_PI * x;
  *sine = static_cast<float>(std::sin(turned));
  *cosine = static_cast<float>(std::cos(turned));
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  struct Lane {
    T given, got;
    int mask;
  } mine{value, value, mask};
  lra::simulated::meet(&mine, [](void* const* all) {
    for (int n = 0; n < 32; ++n) {
      auto* lane = static_cast<Lane*>(all[n]);
      lane->got = static_cast<Lane*>(all[n ^ lane->mask])->given;
    }
  });
  return mine.got;
}
