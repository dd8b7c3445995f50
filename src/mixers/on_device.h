// What is drawn or counted on the CPU, moved to where it is needed.
#pragma once

#include <ATen/ATen.h>

namespace lra::mixers {

// `host` lies on the CPU: itself there, else a copy. The copy is queued in front of what is called
// next, and the host does not wait for what was called before: once this returns, the library has
// read memory that is not pinned, and keeps the other alive.
inline at::Tensor on_device(const at::Tensor& host, at::Device device) {
  return host.to(device, host.scalar_type(), /*non_blocking=*/true);
}

}  // namespace lra::mixers
