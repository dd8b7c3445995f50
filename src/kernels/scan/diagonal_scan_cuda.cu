// Diagonal recurrences (kernels/scan/diagonal_scan.h) on a CUDA device as convolutions with the
// kernels that they amount to: everything but the transforms. Powers of poles are taken in double
// precision every kRun positions, and multiplied up in float between them.
#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/warp.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kTile = 32, kTileThreads = 256, kTileRows = kTileThreads / kTile;
constexpr int kRun = 16, kTableThreads = 128, kWarp = 32;

struct Complex {
  float re = 0, im = 0;
};
__device__ inline Complex operator*(Complex x, Complex y) {
  return {fmaf(x.re, y.re, -x.im * y.im), fmaf(x.re, y.im, x.im * y.re)};
}
// to += factor * x
__device__ inline void add(Complex& to, float factor, Complex x) {
  to.re = fmaf(factor, x.re, to.re);
  to.im = fmaf(factor, x.im, to.im);
}

// A tile of positions and channels of an example, [kTile, kTile] in shared memory.
template <typename T>
struct Tile {
  int64_t example, position, channel, length;
  const uint8_t* valid;
  int column, row;  // of the thread, whose rows are kTileRows apart

  __device__ Tile(const DiagonalScan<T>& p, const ScanChannels& of, int64_t positions) {
    const int64_t along = parts_of(positions, kTile), across = parts_of(of.count, kTile);
    example = blockIdx.x / (along * across);
    position = blockIdx.x % (along * across) / across * kTile;
    channel = blockIdx.x % across * kTile;
    length = p.lengths ? p.lengths[example] : p.length;
    valid = of.valid ? of.valid + example * p.length : nullptr;
    column = static_cast<int>(threadIdx.x) % kTile;
    row = static_cast<int>(threadIdx.x) / kTile;
  }
  static int64_t count(const DiagonalScan<T>& p, const ScanChannels& of, int64_t positions) {
    return p.batch * parts_of(positions, kTile) * parts_of(of.count, kTile);
  }
  __device__ bool has_token(int64_t at) const {
    return at < length && (valid == nullptr || valid[at] != 0);
  }
  __device__ static float& at(int of_row, int of_column) {
    return reinterpret_cast<float*>(dynamic_shared())[of_row * (kTile + 1) + of_column];
  }
};
constexpr size_t kTileBytes = sizeof(float) * kTile * (kTile + 1);

template <typename T>
__global__ void rows_kernel(DiagonalScan<T> p, ScanChannels of, float* rows) {
  const Tile<T> tile(p, of, of.size);
  for (int r = tile.row; r < kTile; r += kTileRows) {
    const int64_t position = tile.position + r, channel = tile.channel + tile.column;
    const bool is_there = tile.has_token(position) && channel < of.count;
    const int64_t from = (tile.example * p.length + position) * p.channels + of.first + channel;
    tile.at(r, tile.column) = is_there ? static_cast<float>(p.x[from]) : 0;
  }
  __syncthreads();
  for (int r = tile.row; r < kTile; r += kTileRows) {
    const int64_t position = tile.position + tile.column, channel = tile.channel + r;
    if (position >= of.size || channel >= of.count) continue;
    rows[(tile.example * of.count + channel) * of.size + position] = tile.at(tile.column, r);
  }
}

template <typename T>
__global__ void positions_kernel(DiagonalScan<T> p, ScanChannels of, const float* rows, T* y) {
  const Tile<T> tile(p, of, p.length);
  for (int r = tile.row; r < kTile; r += kTileRows) {
    const int64_t position = tile.position + tile.column, channel = tile.channel + r;
    const bool is_there = tile.has_token(position) && channel < of.count;
    const int64_t from = (tile.example * of.count + channel) * of.size + position;
    tile.at(r, tile.column) = is_there ? rows[from] : 0;
  }
  __syncthreads();
  for (int r = tile.row; r < kTile; r += kTileRows) {
    const int64_t position = tile.position + r, channel = tile.channel + tile.column;
    if (position >= p.length || channel >= of.count) continue;
    const int64_t to = (tile.example * p.length + position) * p.channels + of.first + channel;
    float sum = tile.at(tile.column, r);
    if (p.skip && tile.has_token(position)) {
      sum = fmaf(p.skip[of.first + channel], static_cast<float>(p.x[to]), sum);
    }
    y[to] = T(sum);
  }
}

// The poles of a channel with the c of one or two directions, in shared memory.
struct Mode {
  double log_radius, angle;
  Complex a, c[2];

  // a^exponent
  __device__ Complex power(int64_t exponent) const {
    if (exponent == 0) return {1, 0};
    const auto times = static_cast<double>(exponent);
    const double radius = exp(times * log_radius), turned = times * angle;
    return {static_cast<float>(radius * cos(turned)), static_cast<float>(radius * sin(turned))};
  }
};

__device__ inline Mode* modes_of_channel(const ScanParameters& p, int64_t channel) {
  auto* modes = reinterpret_cast<Mode*>(dynamic_shared());
  const int64_t plane = p.modes * p.channels;
  const auto number = [&](const float* planes, int64_t mode) {
    const int64_t at = mode * p.channels + channel;
    return Complex{planes[at], p.planes == 2 ? planes[plane + at] : 0};
  };
  for (int64_t n = threadIdx.x; n < p.modes; n += kTableThreads) {
    Mode& mode = modes[n];
    mode.a = number(p.a, n);
    const double re = mode.a.re, im = mode.a.im;
    mode.log_radius = log(sqrt(re * re + im * im));
    mode.angle = atan2(im, re);
    for (int k = 0; k < p.directions; ++k) mode.c[k] = number(p.c + k * p.planes * plane, n);
  }
  __syncthreads();
  return modes;
}

// Place `lag` of the first direction on the circle, or of the second, which begins at -1.
__device__ inline int64_t place_of(int direction, int64_t lag, int64_t size) {
  return direction == 0 ? lag : size - 1 - lag;
}

__global__ void table_kernel(ScanParameters p, int64_t length, int64_t size, float* kernels) {
  const int direction = static_cast<int>(blockIdx.x / p.channels);
  const int64_t channel = blockIdx.x % p.channels;
  const Mode* modes = modes_of_channel(p, channel);
  float* to = kernels + channel * size;
  // The lags of this block: half of the circle, or all of it.
  const int64_t half = size / 2;
  const int64_t lags = p.directions == 1 ? size : direction == 0 ? half : size - half;
  for (int64_t first = int64_t{threadIdx.x} * kRun; first < lags; first += kTableThreads * kRun) {
    float sums[kRun] = {};
    for (int64_t n = 0; first < length && n < p.modes; ++n) {
      Complex state = modes[n].c[direction] * modes[n].power(first);
#pragma unroll
      for (float& sum : sums) {
        sum += state.re;
        state = state * modes[n].a;
      }
    }
    for (int64_t lag = first; lag < first + kRun && lag < lags; ++lag) {
      to[place_of(direction, lag, size)] = lag < length ? sums[lag - first] : 0;
    }
  }
}

// Sums over a warp, in double precision: runs of a long sequence cancel each other.
struct Sum {
  double re = 0, im = 0;

  __device__ void operator+=(Complex run) {
    re += run.re;
    im += run.im;
  }
  __device__ void over_the_warp() {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      re += __shfl_xor_sync(~0u, re, distance);
      im += __shfl_xor_sync(~0u, im, distance);
    }
  }
};

// A warp takes a mode, a lane runs of positions. With w the correlations of a direction,
// sum of w[l] a^l is the conjugate of the gradient of c, and c times sum of (l + 1) w[l + 1] a^l
// that of a.
__global__ void gradients_kernel(ScanParameters p, int64_t length, int64_t size, const float* lags,
                                 float* grads) {
  const int64_t channel = blockIdx.x, plane = p.modes * p.channels;
  const Mode* modes = modes_of_channel(p, channel);
  const float* of_channel = lags + channel * size;
  const auto write = [&](float* planes, int64_t mode, double re, double im) {
    planes[mode * p.channels + channel] = static_cast<float>(re);
    if (p.planes == 2) planes[plane + mode * p.channels + channel] = static_cast<float>(-im);
  };
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t n = warp; n < p.modes; n += kTableThreads / kWarp) {
    Sum of_a;
    for (int k = 0; k < p.directions; ++k) {
      Sum moment, slope;
      for (int64_t first = int64_t{lane} * kRun; first < length; first += kWarp * kRun) {
        Complex power = modes[n].power(first), moment_of_run, slope_of_run;
        for (int64_t lag = first; lag < first + kRun && lag < length; ++lag) {
          add(moment_of_run, of_channel[place_of(k, lag, size)], power);
          if (lag + 1 < length) {
            const float next = of_channel[place_of(k, lag + 1, size)];
            add(slope_of_run, static_cast<float>(lag + 1) * next, power);
          }
          power = power * modes[n].a;
        }
        moment += moment_of_run;
        slope += slope_of_run;
      }
      moment.over_the_warp();
      slope.over_the_warp();
      const Complex c = modes[n].c[k];
      of_a.re += c.re * slope.re - c.im * slope.im;
      of_a.im += c.re * slope.im + c.im * slope.re;
      if (lane == 0) write(grads + (1 + k) * p.planes * plane, n, moment.re, moment.im);
    }
    if (lane == 0) write(grads, n, of_a.re, of_a.im);
  }
  // The skip sees lag 0 alone.
  if (threadIdx.x == 0) grads[(1 + p.directions) * p.planes * plane + channel] = of_channel[0];
}

// A thread takes a channel's frequency, example after example.
__global__ void correlate_kernel(int64_t batch, int64_t numbers, const Complex* x,
                                 const Complex* kernels, Complex* grads, Complex* lags) {
  const int64_t at = int64_t{blockIdx.x} * kTileThreads + threadIdx.x;
  if (at >= numbers) return;
  const Complex kernel = {kernels[at].re, -kernels[at].im};
  Complex sum;
  for (int64_t b = 0; b < batch; ++b) {
    const Complex of_x = x[b * numbers + at], grad = grads[b * numbers + at];
    const Complex product = grad * Complex{of_x.re, -of_x.im};
    sum.re += product.re;
    sum.im += product.im;
    grads[b * numbers + at] = grad * kernel;
  }
  lags[at] = sum;
}

size_t bytes_of_modes(const ScanParameters& p) {
  return sizeof(Mode) * static_cast<size_t>(p.modes);
}

}  // namespace

template <typename T>
void scan_rows(const DiagonalScan<T>& p, const ScanChannels& of, float* rows, Stream stream) {
  launch(rows_kernel<T>, Tile<T>::count(p, of, of.size), kTileThreads, kTileBytes, stream, p, of,
         rows);
}

template <typename T>
void scan_positions(const DiagonalScan<T>& p, const ScanChannels& of, const float* rows, T* y,
                    Stream stream) {
  launch(positions_kernel<T>, Tile<T>::count(p, of, p.length), kTileThreads, kTileBytes, stream, p,
         of, rows, y);
}

void scan_tables(const ScanParameters& p, int64_t length, int64_t size, float* kernels,
                 Stream stream) {
  launch(table_kernel, p.channels * p.directions, kTableThreads, bytes_of_modes(p), stream, p,
         length, size, kernels);
}

void scan_correlations(int64_t batch, int64_t numbers, const float* x, const float* kernels,
                       float* grads, float* lags, Stream stream) {
  const auto complex = [](auto* numbers_of) {
    using Numbers = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(numbers_of)>>,
                                       const Complex, Complex>;
    return reinterpret_cast<Numbers*>(numbers_of);
  };
  launch(correlate_kernel, parts_of(numbers, kTileThreads), kTileThreads, 0, stream, batch, numbers,
         complex(x), complex(kernels), complex(grads), complex(lags));
}

void scan_gradients(const ScanParameters& p, int64_t length, int64_t size, const float* lags,
                    float* grads, Stream stream) {
  launch(gradients_kernel, p.channels, kTableThreads, bytes_of_modes(p), stream, p, length, size,
         lags, grads);
}

template void scan_rows(const DiagonalScan<float>&, const ScanChannels&, float*, Stream);
template void scan_rows(const DiagonalScan<Bf16>&, const ScanChannels&, float*, Stream);
template void scan_positions(const DiagonalScan<float>&, const ScanChannels&, const float*, float*,
                             Stream);
template void scan_positions(const DiagonalScan<Bf16>&, const ScanChannels&, const float*, Bf16*,
                             Stream);

}  // namespace lra::kernels::cuda
