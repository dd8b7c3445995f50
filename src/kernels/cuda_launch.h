// Launching kernels on a CUDA device. Included by *.cu files alone.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/cuda.h"

namespace lra::kernels::cuda {

inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw CheckFailure(std::string("CUDA: ") + cudaGetErrorString(error));
}

inline int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

// Queues kernel(arguments...) for `blocks` blocks of `threads` threads; nothing for no blocks.
// Shared memory above the 48 KB that every kernel has is asked for.
template <typename... P>
void launch(void (*kernel)(P...), int64_t blocks, int threads, size_t shared_bytes, Stream stream,
            std::type_identity_t<P>... arguments) {
  if (blocks == 0) return;
  LRA_CHECK_LE(blocks, int64_t{0x7FFFFFFF});
  if (shared_bytes > size_t{48} << 10) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)));
  }
  void* pointers[] = {&arguments...};
  check(cudaLaunchKernel(kernel, dim3{static_cast<unsigned>(blocks), 1, 1},
                         dim3{static_cast<unsigned>(threads), 1, 1}, pointers, shared_bytes,
                         static_cast<cudaStream_t>(stream)));
}

}  // namespace lra::kernels::cuda
