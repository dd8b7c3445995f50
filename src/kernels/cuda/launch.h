// Launches kernels on a CUDA device. Included only by *.cu files.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/cuda/kernels.h"

namespace lra::kernels::cuda {

inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  if (error == cudaErrorNoKernelImageForDevice) {
    throw Error({.where = "GPU",
                 .what = "the kernels of this build have no code for it",
                 .expected = "compute capability 8.0 (Ampere) or later",
                 .advice = "compute on the CPU, without --device"});
  }
  throw CheckFailure(std::string("CUDA: ") + cudaGetErrorString(error));
}

// Refuses a kernel that wants more shared memory than a block of this GPU can have.
inline void check_shared_memory(size_t bytes) {
  int device = 0, most = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (bytes <= static_cast<size_t>(most)) return;
  throw Error({.where = "GPU",
               .what = "a kernel needs " + std::to_string(bytes >> 10) +
                       " KB of shared memory for a block, and there are " +
                       std::to_string(most >> 10),
               .expected = "narrower heads, or a GPU with more",
               .advice = "train.precision=bf16 needs less"});
}

constexpr int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

// Queues kernel(arguments...) for `blocks` blocks of `threads` threads; nothing for no blocks.
// Requests shared memory above the 48 KB that every kernel has.
template <typename... P>
void launch(void (*kernel)(P...), int64_t blocks, int threads, size_t shared_bytes, Stream stream,
            std::type_identity_t<P>... arguments) {
  if (blocks == 0) return;
  LRA_CHECK_LE(blocks, int64_t{0x7FFFFFFF});
  if (shared_bytes > size_t{48} << 10) {
    check_shared_memory(shared_bytes);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)));
  }
  void* pointers[] = {&arguments...};
  check(cudaLaunchKernel(kernel, dim3{static_cast<unsigned>(blocks), 1, 1},
                         dim3{static_cast<unsigned>(threads), 1, 1}, pointers, shared_bytes,
                         static_cast<cudaStream_t>(stream)));
}

}  // namespace lra::kernels::cuda
