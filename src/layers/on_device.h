// Moves results that are drawn or counted on the CPU to the device that needs them.
#pragma once

#include <ATen/ATen.h>

namespace lra::layers {

// Moves `host` from the CPU: returns itself there, else a copy, queued before later work. A copy to
// a GPU goes through pinned memory, which the library keeps until it was read: from other memory
// more than 64 KB would wait for earlier work.
inline at::Tensor on_device(const at::Tensor& host, at::Device device) {
  const at::Tensor from = device.is_cuda() ? host.pin_memory() : host;
  return from.to(device, host.scalar_type(), /*non_blocking=*/true);
}

}  // namespace lra::layers
