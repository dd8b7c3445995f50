// Devices other than the CPU compute behind the program's back.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace lra::analysis {

// Until everything that the device was given is computed: before a clock is read. The CPU has
// computed it.
inline void wait_for(at::Device device) {
  if (device.is_cpu()) return;
  c10::impl::getDeviceGuardImpl(device.type())->synchronizeDevice(device.index());
}

}  // namespace lra::analysis
