// Rotations on a device.
#include "ops/cuda/device.h"
#include "ops/rotate_tracks_problem.h"

namespace lra::ops::device {
namespace {

Tensor rotate_tracks(const Tensor& x, int64_t tracks, const MaybeTensor& mask, bool back) {
  const OnDeviceOf device(x, {mask});
  const auto rotate = [&](const auto&... arguments) {
    kernels::cuda::rotate(arguments..., device.stream());
  };
  return rotated_by(rotate, x, tracks, mask, back);
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) { m.impl("rotate_tracks", rotate_tracks); }

}  // namespace lra::ops::device
