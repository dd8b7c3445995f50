// Rotations on a device.
#include "ops/rotate_tracks.h"

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

Tensor rotate_tracks(const Tensor& x_in, int64_t tracks, const MaybeTensor& mask, bool back) {
  const OnDeviceOf device(x_in, {mask});
  const Tensor x = x_in.contiguous(), lengths = lengths_of(mask), y = at::empty_like(x);
  kernels::Rotation rotation = rotation_of(x, tracks, mask, back);
  if (lengths.defined()) rotation.lengths = lengths.const_data_ptr<int32_t>();
  with_device_type(x, "lra::rotate_tracks", [&]<typename T>(T) {
    kernels::cuda::rotate<T>(rotation, const_data<T>(x), mutable_data<T>(y), device.stream());
  });
  return y;
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) { m.impl("rotate_tracks", rotate_tracks); }

}  // namespace lra::ops::device
