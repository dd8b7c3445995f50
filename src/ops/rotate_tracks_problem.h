// Arguments of rotate_tracks as the problem of its kernels.
#pragma once

#include "kernels/pointwise/rotation.h"
#include "ops/dispatch.h"

namespace lra::ops {

inline void check_tracks(const Tensor& x, int64_t tracks, const MaybeTensor& mask) {
  LRA_CHECK_EQ(x.dim(), 3);
  LRA_CHECK(1 <= tracks && tracks < 63);
  check_mask(mask, x.size(0), x.size(1));
}

inline int64_t track_offset(int64_t track, bool back) {
  const int64_t offset = track == 0 ? 0 : int64_t{1} << (track - 1);
  return back ? -offset : offset;
}

// The result of a kernel, called as rotate(rotation, from, to) with words of the elements' size.
template <typename Rotate>
Tensor rotated_by(const Rotate& rotate, const Tensor& x_in, int64_t tracks, const MaybeTensor& mask,
                  bool back) {
  check_tracks(x_in, tracks, mask);
  const Tensor x = x_in.contiguous(), lengths = lengths_of(mask), y = at::empty_like(x);
  const int64_t width = x.size(2) / tracks, wider = x.size(2) % tracks;
  kernels::Rotation rotation{.batch = x.size(0), .length = x.size(1), .first = {0}, .offsets = {}};
  for (int64_t m = 0; m < tracks; ++m) {
    rotation.first.push_back(rotation.first.back() + width + (m < wider ? 1 : 0));
    rotation.offsets.push_back(track_offset(m, back));
  }
  if (lengths.defined()) rotation.lengths = lengths.const_data_ptr<int32_t>();
  const auto run = [&]<typename T>(T) {
    rotate(rotation, static_cast<const T*>(x.const_data_ptr()),
           static_cast<T*>(y.mutable_data_ptr()));
  };
  LRA_CHECK(x.element_size() == 2 || x.element_size() == 4 || x.element_size() == 8);
  if (x.element_size() == 2) run(uint16_t{});
  if (x.element_size() == 4) run(uint32_t{});
  if (x.element_size() == 8) run(uint64_t{});
  return y;
}

}  // namespace lra::ops
