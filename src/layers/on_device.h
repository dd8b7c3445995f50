// Moves results that are drawn or counted on the CPU to the device that needs them.
#pragma once

#include <ATen/ATen.h>

namespace lra::layers {

// `host` lies on the CPU: itself there, else a copy, queued in front of what is called next. To a
// GPU it goes through pinned memory, which the library keeps until it was read: from other memory
// more than 64 KB would wait for what was called before.
inline at::Tensor on_device(const at::Tensor& host, at::Device device) {
  const at::Tensor from = device.is_cuda() ? host.pin_memory() : host;
  return from.to(device, host.scalar_type(), /*non_blocking=*/true);
}

}  // namespace lra::layers
