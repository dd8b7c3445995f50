// Convolutions on a device: by the library's Fourier transforms.
#include "ops/long_convolution.h"

#include "ops/cuda/device.h"

namespace lra::ops::device {

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("convolution", convolution_by_transforms);
  m.impl("convolution_kernel_gradient", kernel_gradient_by_transforms);
}

}  // namespace lra::ops::device
