// Rotations of kernels/pointwise/rotation.h on a CUDA device: a thread moves a channel of some
// positions, whose source it finds without a division.
#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kRotationThreads = 128, kPositions = 32, kMostTracks = 64;

// A Rotation whose lists are in the argument of the kernel.
struct TracksOnDevice {
  int64_t length = 0, channels = 0, parts = 0;  // of an example
  const int32_t* lengths = nullptr;
  int64_t ends[kMostTracks] = {}, offsets[kMostTracks] = {};
};

template <typename T>
__global__ void rotate_kernel(TracksOnDevice p, const T* from, T* to) {
  const int64_t example = blockIdx.x / p.parts, begin = blockIdx.x % p.parts * kPositions;
  const int64_t end = begin + kPositions < p.length ? begin + kPositions : p.length;
  const int64_t tokens = p.lengths == nullptr ? p.length : p.lengths[example];
  for (int64_t channel = threadIdx.x; channel < p.channels; channel += kRotationThreads) {
    int track = 0;
    while (channel >= p.ends[track]) ++track;
    const int64_t first = example * p.length * p.channels + channel;
    int64_t source = begin < tokens ? (begin + p.offsets[track]) % tokens : 0;
    if (source < 0) source += tokens;
    for (int64_t place = begin; place < end; ++place) {
      to[first + place * p.channels] = from[first + (place < tokens ? source : place) * p.channels];
      source = source + 1 == tokens ? 0 : source + 1;
    }
  }
}

}  // namespace

template <typename T>
void rotate(const Rotation& p, const T* from, T* to, Stream stream) {
  LRA_CHECK_LE(p.offsets.size(), size_t{kMostTracks});
  TracksOnDevice tracks{.length = p.length,
                        .channels = p.first.back(),
                        .parts = parts_of(p.length, kPositions),
                        .lengths = p.lengths};
  std::copy(p.first.begin() + 1, p.first.end(), tracks.ends);
  std::copy(p.offsets.begin(), p.offsets.end(), tracks.offsets);
  launch(rotate_kernel<T>, p.batch * tracks.parts, kRotationThreads, 0, stream, tracks, from, to);
}

template void rotate(const Rotation&, const uint16_t*, uint16_t*, Stream);
template void rotate(const Rotation&, const uint32_t*, uint32_t*, Stream);
template void rotate(const Rotation&, const uint64_t*, uint64_t*, Stream);

}  // namespace lra::kernels::cuda
