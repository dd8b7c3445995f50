#include "training/ranks/nccl.h"

#ifdef LRA_NCCL  // cmake/cuda.cmake
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace lra::training {

c10::intrusive_ptr<c10d::Backend> open_nccl(
    [[maybe_unused]] const c10::intrusive_ptr<c10d::Store>& store,
    [[maybe_unused]] const Launch& launch, [[maybe_unused]] std::chrono::milliseconds timeout) {
#ifdef LRA_NCCL
  // Else c10d ends the process itself when a rank is lost.
  setenv("TORCH_NCCL_BLOCKING_WAIT", "1", /*overwrite=*/0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, static_cast<int>(launch.rank),
                                                     static_cast<int>(launch.num_ranks), options);
#else
  throw Error({.where = "--rank-backend",
               .what = "this program has no NCCL",
               .expected = "gloo, or a program that is built with a CUDA LibTorch and nccl.h",
               .advice = ""});
#endif
}

}  // namespace lra::training
