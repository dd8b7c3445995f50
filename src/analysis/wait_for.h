// Devices other than the CPU compute behind the program's back.
#pragma once

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Device.h>

namespace lra::analysis {

// Waits until the device has computed all queued work; call it before reading a clock. The CPU
// never has any queued.
inline void wait_for(at::Device device) {
  if (device.is_cpu()) return;
  at::accelerator::synchronizeDevice(device.index());
}

}  // namespace lra::analysis
