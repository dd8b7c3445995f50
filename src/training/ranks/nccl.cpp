#include "training/ranks/nccl.h"

#ifdef LRA_NCCL  // cmake/cuda.cmake
#include <c10/util/env.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "base/text_format.h"
#endif

namespace lra::training {

#ifdef LRA_NCCL
OpenBackend nccl_on(at::Device gpu) {
  // By default c10d ends the process itself when a rank is lost.
  c10::utils::set_env("TORCH_NCCL_BLOCKING_WAIT", "1", /*overwrite=*/false);
  return [gpu](const auto& store, const Launch& launch,
               auto timeout) -> c10::intrusive_ptr<c10d::Backend> {
    try {
      auto options = c10d::ProcessGroupNCCL::Options::create();
      options->timeout = timeout;
      auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(
          c10::make_intrusive<c10d::PrefixStore>("nccl", store), static_cast<int>(launch.rank),
          static_cast<int>(launch.num_ranks), options);
      backend->eagerConnectSingleDevice(gpu);
      return backend;
    } catch (const c10::Error& error) {
      std::string why = error.what_without_backtrace();
      std::ranges::replace(why, '\n', ' ');
      throw Error({.where = launch.name(),
                   .what = "NCCL cannot connect " + gpu.str() + " (" + printable(why) + ")",
                   .advice = "each rank needs a GPU of its own; --rank-backend gloo needs none",
                   .code = ExitCode::kIoError});
    }
  };
}
#else
OpenBackend nccl_on(at::Device) {
  throw Error({.where = "--rank-backend",
               .what = "this program has no NCCL",
               .expected = "gloo, or a program that is built with a CUDA LibTorch and nccl.h",
               .advice = ""});
}
#endif

}  // namespace lra::training
