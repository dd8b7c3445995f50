// Angular hashing on a CUDA device: kernels/sorting/hash_buckets.h. A warp takes a row in one
// round, each lane the columns lane, lane + 32, ... of the rotation. A rotation's numbers are drawn
// two by a thread.
#include <cmath>
#include <numbers>

#include "base/rng.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

template <typename T>
__global__ void buckets_kernel(HashShape shape, HeadView<const T> x, const float* rotations,
                               const uint8_t* mask, int32_t* buckets) {
  const int64_t index = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;  // as of `buckets`
  if (index >= shape.rounds * shape.batch * shape.heads * shape.length) return;
  const int64_t row = index % shape.length, head = index / shape.length % shape.heads;
  const int64_t batch = index / (shape.length * shape.heads) % shape.batch;
  const int64_t round = index / (shape.length * shape.heads * shape.batch);
  const int lane = threadIdx.x % 32;
  const T* values = x.row(batch, head, row);
  const float* rotation = rotations + (head * shape.rounds + round) * shape.head_dim * shape.half;
  const bool used = mask == nullptr || mask[batch * shape.length + row] != 0;
  float largest = -1;
  int bucket = 0;
  for (int64_t column = lane; used && column < shape.half; column += 32) {
    float sum = 0;
    for (int64_t e = 0; e < shape.head_dim; ++e) {
      sum += float(values[e]) * rotation[e * shape.half + column];
    }
    if (fabsf(sum) > largest) {
      largest = fabsf(sum);
      bucket = static_cast<int>(sum < 0 ? shape.half + column : column);
    }
  }
  const int half = static_cast<int>(shape.half);
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(~0u, largest, distance);
    const int other_bucket = __shfl_xor_sync(~0u, bucket, distance);
    // Ties go to the first column.
    if (other > largest || (other == largest && other_bucket % half < bucket % half)) {
      largest = other;
      bucket = other_bucket;
    }
  }
  if (lane == 0) buckets[index] = used ? bucket : 2 * half;
}

// Both numbers of a Box-Muller pair (RandomStream::normal) come from one block of random words.
__global__ void rotations_kernel(int64_t streams, int64_t rounds, int64_t count, uint64_t key,
                                 float* rotations) {
  const int64_t pairs = (count + 1) / 2, index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t stream = index / pairs, pair = index % pairs;
  if (stream >= streams) return;
  const uint64_t own = derive_key(key, RandomUse::kMixer, static_cast<uint32_t>(stream / rounds),
                                  static_cast<uint32_t>(stream % rounds));
  const PhiloxBlock words =
      philox4x32({static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32), 0, 0}, own);
  const auto uniform = [&](int n) {
    return static_cast<double>((uint64_t{words[n + 1]} << 32 | words[n]) >> 11) * 0x1p-53;
  };
  const double radius = sqrt(-2.0 * log(1.0 - uniform(0)));
  const double angle = 2.0 * std::numbers::pi * uniform(2);
  float* to = rotations + stream * count + 2 * pair;
  to[0] = static_cast<float>(radius * cos(angle));
  if (2 * pair + 1 < count) to[1] = static_cast<float>(radius * sin(angle));
}

}  // namespace

void draw_rotations(int64_t heads, int64_t rounds, int64_t count, uint64_t key, float* rotations,
                    Stream stream) {
  const int64_t streams = heads * rounds;
  launch(rotations_kernel, parts_of(streams * ((count + 1) / 2), kThreads), kThreads, 0, stream,
         streams, rounds, count, key, rotations);
}

template <typename T>
void hash_buckets(const HashShape& shape, const HeadView<const T>& x, const float* rotations,
                  const uint8_t* mask, int32_t* buckets, Stream stream) {
  const int64_t rows = shape.rounds * shape.batch * shape.heads * shape.length;
  launch(buckets_kernel<T>, parts_of(rows, kWarps), kThreads, 0, stream, shape, x, rotations, mask,
         buckets);
}

template void hash_buckets<float>(const HashShape&, const HeadView<const float>&, const float*,
                                  const uint8_t*, int32_t*, Stream);
template void hash_buckets<Bf16>(const HashShape&, const HeadView<const Bf16>&, const float*,
                                 const uint8_t*, int32_t*, Stream);

}  // namespace lra::kernels::cuda
