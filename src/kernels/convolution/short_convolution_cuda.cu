// Convolutions of a few lags on a CUDA device: kernels/convolution/short_convolution.h. A thread
// walks over a run of positions of an example with one or two channels, whose last K rows it keeps
// in registers; lags beyond the kernel's width have the weight 0.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sums.h"
#include "kernels/cuda/vectors.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kRun = 64, kLagThreads = 128;
// Shares of the parameters' gradients are first added up in so many groups.
constexpr int64_t kShareGroups = 32;

// The run of positions and the channels of a thread.
template <typename T, int N>
struct LagTask {
  const ShortConvolution<T>& p;
  int64_t run, channel, example, begin;

  __device__ explicit LagTask(const ShortConvolution<T>& p) : p(p) {
    const int64_t blocks_of_run = parts_of(p.channels / N, kLagThreads);
    const int64_t runs = parts_of(p.length, kRun);
    run = blockIdx.x / blocks_of_run;
    channel = (blockIdx.x % blocks_of_run * kLagThreads + threadIdx.x) * N;
    example = run / runs;
    begin = run % runs * kRun;
  }
  __device__ int end() const {
    return p.length - begin < kRun ? static_cast<int>(p.length - begin) : kRun;
  }
  __device__ bool is_valid(int64_t t) const {
    return 0 <= t && t < p.length && (p.valid == nullptr || p.valid[example * p.length + t] != 0);
  }
  // Row t of an array whose rows are this far apart; 0 where it is not valid.
  __device__ void load(float (&to)[N], const T* from, int64_t stride, int64_t t) const {
    if (is_valid(t)) return load_floats(to, from + (example * p.length + t) * stride + channel);
#pragma unroll
    for (float& value : to) value = 0;
  }
  __device__ void store(T* to, int64_t t, const float (&row)[N]) const {
    store_floats(to + (example * p.length + t) * p.channels + channel, row);
  }
};

// The kernel and the bias of a thread's channels.
template <int K, int N>
struct LagWeights {
  float kernel[K][N], bias[N];

  template <typename T>
  __device__ explicit LagWeights(const LagTask<T, N>& task) {
    const ShortConvolution<T>& p = task.p;
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int j = 0; j < K; ++j) {
        kernel[j][i] = j < p.width ? p.kernel[j * p.channels + task.channel + i] : 0;
      }
      bias[i] = p.bias[task.channel + i];
    }
  }
};

// The last rows of an array, the newest first.
template <int K, int N>
struct LastRows {
  float of[K][N] = {};

  __device__ void push(const float (&row)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
      for (int j = K - 1; j > 0; --j) of[j][i] = of[j - 1][i];
      of[0][i] = row[i];
    }
  }
  // The sum of a channel: row j times weight j, or weight K - 1 - j.
  __device__ float sum(const LagWeights<K, N>& weights, int i) const {
    float sum = weights.bias[i];
#pragma unroll
    for (int j = 0; j < K; ++j) sum = fmaf(weights.kernel[j][i], of[j][i], sum);
    return sum;
  }
  __device__ float reversed_sum(const LagWeights<K, N>& weights, int i) const {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < K; ++j) sum = fmaf(weights.kernel[j][i], of[K - 1 - j][i], sum);
    return sum;
  }
};

__device__ inline float open_share(float x) {
  return fast_divide(1, 1 + fast_exp2(-1.4426950408889634f * x));
}

template <typename T, int K, int N>
__global__ void short_forward_kernel(ShortConvolution<T> p, T* y) {
  const LagTask<T, N> task(p);
  if (task.channel >= p.channels) return;
  const LagWeights<K, N> weights(task);
  LastRows<K, N> rows;
  float row[N];
  for (int n = 1 - K; n < task.end(); ++n) {
    const int64_t t = task.begin + n;
    task.load(row, p.x, p.row_stride, t + p.future);
    rows.push(row);
    if (n < 0) continue;
    const bool valid = task.is_valid(t);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float sum = rows.sum(weights, i);
      row[i] = valid ? sum * open_share(sum) : 0;
    }
    task.store(y, t, row);
  }
}

// The gradients of a run of x, and its shares of those of the parameters, [width + 1, channels].
// Gradients of the sums are needed from `future` positions before the run on.
template <typename T, int K, int N>
__global__ void short_backward_kernel(ShortConvolution<T> p, const T* grad, T* grad_x,
                                      float* shares) {
  const LagTask<T, N> task(p);
  if (task.channel >= p.channels) return;
  const LagWeights<K, N> weights(task);
  LastRows<K, N> rows, grads;
  float of_kernel[K][N] = {}, of_bias[N] = {}, row[N], of_sum[N];
  const int future = static_cast<int>(p.future), first = -future - (K - 1);
  // Runs behind the last example have shares of 0.
  const int last = task.example < p.batch ? task.end() - future + K - 1 : first;
  for (int n = first; n < last; ++n) {
    const int64_t t = task.begin + n;
    task.load(row, p.x, p.row_stride, t + future);
    rows.push(row);
    if (n < -future) continue;
    task.load(of_sum, grad, p.channels, t);
    const bool is_own = 0 <= n && n < task.end();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float sum = rows.sum(weights, i), open = open_share(sum);
      of_sum[i] *= open * (1 + sum * (1 - open));
      if (!is_own) continue;
      of_bias[i] += of_sum[i];
#pragma unroll
      for (int j = 0; j < K; ++j) of_kernel[j][i] = fmaf(of_sum[i], rows.of[j][i], of_kernel[j][i]);
    }
    grads.push(of_sum);
    const int s = n + future - (K - 1);  // the position whose last gradient this was
    if (s < 0) continue;
    const bool valid = task.is_valid(task.begin + s);
#pragma unroll
    for (int i = 0; i < N; ++i) row[i] = valid ? grads.reversed_sum(weights, i) : 0;
    task.store(grad_x, task.begin + s, row);
  }
  float* const to = shares + task.run * (p.width + 1) * p.channels + task.channel;
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < K; ++j) {
      if (j < p.width) to[j * p.channels + i] = of_kernel[j][i];
    }
    to[p.width * p.channels + i] = of_bias[i];
  }
}

template <typename T>
int64_t runs_of(const ShortConvolution<T>& p) {
  return p.batch * parts_of(p.length, kRun);
}

// Calls use(K, N): lags and channels of a thread.
template <typename T, typename F>
void with_lags(const ShortConvolution<T>& p, std::initializer_list<const T*> arrays, const F& use) {
  LRA_CHECK(1 <= p.width && p.width <= kMostShortLags);
  bool pairs = p.channels % 2 == 0 && p.row_stride % 2 == 0;
  for (const T* array : arrays) pairs = pairs && takes_vectors<2>(array);
  const auto with_channels = [&](auto k) {
    if (pairs) return use(k, std::integral_constant<int, 2>());
    use(k, std::integral_constant<int, 1>());
  };
  if (p.width <= 4) return with_channels(std::integral_constant<int, 4>());
  with_channels(std::integral_constant<int, kMostShortLags>());
}

}  // namespace

template <typename T>
void short_convolution_forward(const ShortConvolution<T>& p, T* y, Stream stream) {
  with_lags<T>(p, {p.x, y}, [&](auto k, auto n) {
    launch(short_forward_kernel<T, k, n>, runs_of(p) * parts_of(p.channels / n, kLagThreads),
           kLagThreads, 0, stream, p, y);
  });
}

template <typename T>
int64_t short_convolution_scratch(const ShortConvolution<T>& p) {
  return (parts_of(runs_of(p), kShareGroups) + 1) * kShareGroups * (p.width + 1) * p.channels;
}

template <typename T>
void short_convolution_backward(const ShortConvolution<T>& p, const T* grad, T* grad_x,
                                float* grad_parameters, float* scratch, Stream stream) {
  const int64_t numbers = (p.width + 1) * p.channels;
  const int64_t in_group = parts_of(runs_of(p), kShareGroups), all = in_group * kShareGroups;
  float* const of_groups = scratch + all * numbers;
  with_lags<T>(p, {p.x, grad, grad_x}, [&](auto k, auto n) {
    launch(short_backward_kernel<T, k, n>, all * parts_of(p.channels / n, kLagThreads), kLagThreads,
           0, stream, p, grad, grad_x, scratch);
  });
  // Every kShareGroups-th share, then the groups in their order.
  sum_shares(in_group, kShareGroups * numbers, scratch, of_groups, stream);
  sum_shares(kShareGroups, numbers, of_groups, grad_parameters, stream);
}

#define LRA_INSTANTIATE(T)                                                                   \
  template void short_convolution_forward(const ShortConvolution<T>&, T*, Stream);           \
  template int64_t short_convolution_scratch(const ShortConvolution<T>&);                    \
  template void short_convolution_backward(const ShortConvolution<T>&, const T*, T*, float*, \
                                           float*, Stream);
LRA_INSTANTIATE(float)
LRA_INSTANTIATE(Bf16)
#undef LRA_INSTANTIATE

}  // namespace lra::kernels::cuda
