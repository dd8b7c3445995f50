// Angular hashing on a CUDA device: kernels/sorting/hash_buckets.h. A warp takes a row in one
// round, each lane the columns lane, lane + 32, ... of the rotation.
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

}  // namespace

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
