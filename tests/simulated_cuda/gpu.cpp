#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include "tested_device.h"

namespace lra {

std::optional<at::Device> tested_device() {
  if (!at::hasCUDA() || at::detail::getCUDAHooks().deviceCount() == 0) return std::nullopt;
  return at::Device(at::kCUDA, 0);
}

bool is_simulated() { return false; }

}  // namespace lra
