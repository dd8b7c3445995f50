// The recurrence of kernels/scan/matrix_scan.h on a CUDA device, one position after another. Rows
// of a state are independent of each other once it is known what is written: some lanes of a warp
// share a row, of a state or of its transpose, in registers, and walk along the sequence. No state
// is kept; the backward pass walks four times, with S~ the decayed state and dS the gradient of a
// state:
//
//   forward with S^T, only for the delta rule: e = v - S~^T r, so that u = beta e;
//   back with dS^T: the gradients du = dS^T k of u, and dv = beta du;
//   forward with S: dq = S do, and w = S~ dv, so that dr = -w;
//   back with dS: dk = dS u, and dr is added to it if r is k.
//
// The last of these also has the gradient g of a log decay, without S and dS at the same place: g_t
// is the sum over V of S~_t and dS~_t = dS_t - r_t dv_t^T (w and dv in it only with the delta
// rule), and since S_t = S~_t + k_t u_t^T and dS_t = a_{t+1} dS~_{t+1} + q_t do_t^T,
//
//   g_t = g_{t+1} + q_t dq_t - r_t w_t - k_t (dS_t u_t),
//
// a sum over time that carries its rounding errors along.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/vectors.h"
#include "kernels/scan/scan_cuda_lanes.h"

namespace lra::kernels::cuda {
namespace {

constexpr int kTile = 16;  // positions that are read at a time

// The walks of a backward pass hand these on: e and du [batch, length, heads, V]; w and g [batch,
// length, heads, K], where g holds q dq - r w before the last walk. There is no w with reads.
struct MatrixScratch {
  float *e = nullptr, *du = nullptr, *w = nullptr, *g = nullptr;
};

// The lanes of a row in a walk: N numbers of it in each, in groups of four side by side.
template <int N>
class RowLanes {
 public:
  __device__ RowLanes(int lanes, const float* vectors, const float* scalars, float* results)
      : lanes_(lanes),
        lane_(static_cast<int>(threadIdx.x) % lanes),
        row_(static_cast<int>(threadIdx.x) / lanes),
        vectors_(vectors),
        scalars_(scalars),
        results_(results) {}

  // The lane's part of a vector, the row's number in an array, and in a result.
  __device__ void load(float (&to)[N], int vector, int step) const {
    const float* from = vectors_ + (vector * kTile + step) * N * lanes_ + 4 * lane_;
#pragma unroll
    for (int n = 0; n < N; n += 4) {
      const auto four = load_vector<4>(from + n * lanes_);
      for (int i = 0; i < 4; ++i) to[n + i] = four.values[i];
    }
  }
  __device__ float scalar(int array, int step) const { return scalars_[place(array, step)]; }
  __device__ void write(int result, int step, float value) const {
    if (lane_ == 0) results_[place(result, step)] = value;
  }
  __device__ float dot(const float (&a)[N], const float (&b)[N]) const {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < N; ++n) sum = fmaf(a[n], b[n], sum);
    return sum_of_lanes(sum, lanes_);
  }

 private:
  __device__ int place(int array, int step) const {
    return (array * kTile + step) * (kScanThreads / lanes_) + row_;
  }
  const int lanes_, lane_, row_;
  const float *const vectors_, *const scalars_;
  float* const results_;
};

// The lane's part of a row, and a sum over time with what its additions lost.
template <int N>
struct RowState {
  float m[N] = {};
  float sum = 0, lost = 0;

  __device__ void scale(const float (&by)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) m[n] *= by[n];
  }
  __device__ void scale(float by) {
#pragma unroll
    for (int n = 0; n < N; ++n) m[n] *= by;
  }
  __device__ void add(float x, const float (&y)[N]) {
#pragma unroll
    for (int n = 0; n < N; ++n) m[n] = fmaf(x, y[n], m[n]);
  }
  __device__ void add_to_sum(float x) {
    const float exact = x - lost, next = sum + exact;
    lost = (next - sum) - exact;
    sum = next;
  }
};

// All walks share the problem, its results, and the numbers of a position.
template <typename T>
struct MatrixWalk {
  MatrixScan<T> p;
  T* o = nullptr;
  MatrixScanBackward<T> to = {};
  MatrixScratch scratch = {};

  __device__ float q(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return static_cast<float>(p.q[rows.at_key(t, p.q_row) + n]);
  }
  __device__ float k(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return static_cast<float>(p.k[rows.at_key(t, p.k_row) + n]);
  }
  __device__ float r(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return static_cast<float>(p.r[rows.at_key(t, p.r_row) + n]);
  }
  __device__ float v(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return static_cast<float>(p.v[rows.at_value(t, p.v_row) + n]);
  }
  __device__ float decay(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return expf(p.log_decay[rows.at(t, p.decays) + (p.decays == 1 ? 0 : n)]);
  }
  __device__ float beta(const MatrixScanRows& rows, int64_t t) const {
    return p.beta == nullptr ? 1 : p.beta[rows.at(t, 1)];
  }
  __device__ float grad(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return static_cast<float>(to.grad[rows.at(t, p.values) + n]);
  }
  __device__ float u(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return beta(rows, t) * (p.delta ? scratch.e[rows.at(t, p.values) + n] : v(rows, t, n));
  }
  __device__ float dv(const MatrixScanRows& rows, int64_t t, int64_t n) const {
    return beta(rows, t) * scratch.du[rows.at(t, p.values) + n];
  }
};

// A walk says which numbers of a position lanes share (vectors) and a row has for itself (scalars),
// what a step does with them, and where its results go. Here the rows are those of S^T.
template <typename T, bool kReads>
struct WalkOfValues : MatrixWalk<T> {
  // The vectors: decays, k, reads if they are not k, q.
  static constexpr int kRead = kReads ? 2 : 1, kQuery = kRead + 1;

  __host__ __device__ int64_t height() const { return this->p.values; }
  __host__ __device__ int64_t width() const { return this->p.keys; }
  __device__ float vector(const MatrixScanRows& rows, int which, int64_t t, int64_t n) const {
    if (which == 0) return this->decay(rows, t, n);
    if (which == 1) return this->k(rows, t, n);
    return which == kQuery ? this->q(rows, t, n) : this->r(rows, t, n);
  }
};

// Here they are those of S.
template <typename T, bool kDelta, bool kReads>
struct WalkOfKeys : MatrixWalk<T> {
  static constexpr int kVectors = kDelta ? 3 : 2;

  __host__ __device__ int64_t height() const { return this->p.keys; }
  __host__ __device__ int64_t width() const { return this->p.values; }
  __device__ float vector(const MatrixScanRows& rows, int which, int64_t t, int64_t n) const {
    return which == 0   ? this->u(rows, t, n)
           : which == 1 ? this->grad(rows, t, n)
                        : this->dv(rows, t, n);
  }
  __device__ float scalar(const MatrixScanRows& rows, int which, int64_t t, int64_t n) const {
    if (which == 0) return this->decay(rows, t, n);
    if (which == 1) return this->q(rows, t, n);
    if (which == 2) return this->k(rows, t, n);
    if (kReads && which == 3) return this->r(rows, t, n);
    return (kDelta && which == 3 ? this->scratch.w : this->scratch.g)[rows.at(t, this->p.keys) + n];
  }
};

// Forward with S^T: o, or with `kError` e.
template <typename T, bool kReads, bool kError>
struct ForwardWalk : WalkOfValues<T, kReads> {
  using Base = WalkOfValues<T, kReads>;
  static constexpr int kVectors = kError ? Base::kQuery : Base::kQuery + 1;
  static constexpr int kScalars = 2, kResults = 1;
  static constexpr bool kBack = false;

  __device__ float scalar(const MatrixScanRows& rows, int which, int64_t t, int64_t n) const {
    return which == 0 ? this->v(rows, t, n) : this->beta(rows, t);
  }
  template <int N>
  __device__ void step(const RowLanes<N>& lanes, RowState<N>& state, int step) const {
    float decay[N], k[N], read[N];
    lanes.load(decay, 0, step);
    lanes.load(k, 1, step);
    lanes.load(read, Base::kRead, step);
    state.scale(decay);
    float e = lanes.scalar(0, step);
    if (this->p.delta) e -= lanes.dot(state.m, read);
    state.add(lanes.scalar(1, step) * e, k);
    if constexpr (kError) {
      lanes.write(0, step, e);
    } else {
      float q[N];
      lanes.load(q, Base::kQuery, step);
      lanes.write(0, step, lanes.dot(state.m, q));
    }
  }
  __device__ void store(const MatrixScanRows& rows, int, int64_t t, int64_t n, float x) const {
    const int64_t at = rows.at(t, this->p.values) + n;
    if constexpr (kError) {
      this->scratch.e[at] = x;
    } else {
      this->o[at] = T(x);
    }
  }
};

// Back with dS^T: du and dv.
template <typename T, bool kReads>
struct ValuesWalk : WalkOfValues<T, kReads> {
  using Base = WalkOfValues<T, kReads>;
  static constexpr int kVectors = Base::kQuery + 1, kScalars = 2, kResults = 2;
  static constexpr bool kBack = true;

  __device__ float scalar(const MatrixScanRows& rows, int which, int64_t t, int64_t n) const {
    return which == 0 ? this->grad(rows, t, n) : this->beta(rows, t);
  }
  template <int N>
  __device__ void step(const RowLanes<N>& lanes, RowState<N>& state, int step) const {
    float decay[N], k[N], read[N], q[N];
    lanes.load(decay, 0, step);
    lanes.load(k, 1, step);
    lanes.load(read, Base::kRead, step);
    lanes.load(q, Base::kQuery, step);
    state.add(lanes.scalar(0, step), q);
    const float du = lanes.dot(state.m, k), dv = lanes.scalar(1, step) * du;
    lanes.write(0, step, du);
    lanes.write(1, step, dv);
    if (this->p.delta) state.add(-dv, read);
    state.scale(decay);
  }
  __device__ void store(const MatrixScanRows& rows, int which, int64_t t, int64_t n,
                        float x) const {
    const int64_t at = rows.at(t, this->p.values) + n;
    if (which == 0) {
      this->scratch.du[at] = x;
    } else {
      this->to.grad_v[at] = T(x);
    }
  }
};

// Forward with S: dq, q dq - r w, and with the delta rule w.
template <typename T, bool kDelta, bool kReads>
struct QueriesWalk : WalkOfKeys<T, kDelta, kReads> {
  static constexpr int kScalars = kReads ? 4 : 3, kResults = kDelta ? 3 : 2;
  static constexpr bool kBack = false;

  template <int N>
  __device__ void step(const RowLanes<N>& lanes, RowState<N>& state, int step) const {
    float u[N], grad[N];
    lanes.load(u, 0, step);
    lanes.load(grad, 1, step);
    state.scale(lanes.scalar(0, step));
    const float k = lanes.scalar(2, step);
    float rw = 0;
    if constexpr (kDelta) {
      float dv[N];
      lanes.load(dv, 2, step);
      const float w = lanes.dot(state.m, dv);
      lanes.write(2, step, w);
      rw = (kReads ? lanes.scalar(3, step) : k) * w;
    }
    state.add(k, u);
    const float dq = lanes.dot(state.m, grad);
    lanes.write(0, step, dq);
    lanes.write(1, step, lanes.scalar(1, step) * dq - rw);
  }
  __device__ void store(const MatrixScanRows& rows, int which, int64_t t, int64_t n,
                        float x) const {
    const int64_t at = rows.at(t, this->p.keys) + n;
    if (which == 0) {
      this->to.grad_q[at] = T(x);
    } else if (which == 1) {
      this->scratch.g[at] = x;
    } else if constexpr (kReads) {
      this->to.grad_r[at] = T(-x);
    } else {
      this->scratch.w[at] = x;
    }
  }
};

// Back with dS: dk and g, which takes the place of what the walk before left there.
template <typename T, bool kDelta, bool kReads>
struct KeysWalk : WalkOfKeys<T, kDelta, kReads> {
  static constexpr int kScalars = kDelta ? 5 : 4, kResults = 2;
  static constexpr bool kBack = true;

  template <int N>
  __device__ void step(const RowLanes<N>& lanes, RowState<N>& state, int step) const {
    float u[N], grad[N];
    lanes.load(u, 0, step);
    lanes.load(grad, 1, step);
    state.add(lanes.scalar(1, step), grad);
    const float of_u = lanes.dot(state.m, u), k = lanes.scalar(2, step);
    state.add_to_sum(lanes.scalar(kScalars - 1, step) - k * of_u);
    lanes.write(1, step, state.sum);
    lanes.write(0, step, kDelta && !kReads ? of_u - lanes.scalar(3, step) : of_u);
    if constexpr (kDelta) {
      float dv[N];
      lanes.load(dv, 2, step);
      state.add(kReads ? -lanes.scalar(3, step) : -k, dv);
    }
    state.scale(lanes.scalar(0, step));
  }
  __device__ void store(const MatrixScanRows& rows, int which, int64_t t, int64_t n,
                        float x) const {
    const int64_t at = rows.at(t, this->p.keys) + n;
    if (which == 0) {
      this->to.grad_k[at] = T(x);
    } else {
      this->scratch.g[at] = x;
    }
  }
};

// Reads a tile [kTile, width] into shared memory: first into registers, so that no load waits for
// another.
template <typename Load>
__device__ void read_tile(float* to, int width, const Load& load) {
  constexpr int kAtOnce = 8;
  const int count = kTile * width;
  for (int begin = static_cast<int>(threadIdx.x); begin < count; begin += kAtOnce * kScanThreads) {
    float numbers[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int place = begin + i * kScanThreads;
      numbers[i] = place < count ? load(place / width, place % width) : 0;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int place = begin + i * kScanThreads;
      if (place < count) to[place] = numbers[i];
    }
  }
}

// A block takes kScanThreads / lanes rows of the matrices of a head of an example. Numbers that do
// not exist are 0.
template <typename Walk, int N>
__global__ void walk_kernel(Walk walk, int lanes) {
  const int across = N * lanes, block_rows = kScanThreads / lanes;
  const int64_t parts = parts_of(walk.height(), block_rows);
  const int64_t first = blockIdx.x % parts * block_rows;
  const MatrixScanRows rows(walk.p, blockIdx.x / parts);
  float* const vectors = reinterpret_cast<float*>(dynamic_shared());
  float* const scalars = vectors + Walk::kVectors * kTile * across;
  float* const results = scalars + Walk::kScalars * kTile * block_rows;
  const RowLanes<N> row_lanes(lanes, vectors, scalars, results);
  RowState<N> state;
  for (int which = 0; which < Walk::kResults; ++which) {
    for_each_place(walk.p.length - rows.length, block_rows, [&](int64_t row, int n) {
      if (first + n < walk.height()) walk.store(rows, which, rows.length + row, first + n, 0);
    });
  }
  const int64_t tiles = parts_of(rows.length, kTile);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t begin = (Walk::kBack ? tiles - 1 - tile : tile) * kTile;
    __syncthreads();  // the tile before
#pragma unroll
    for (int which = 0; which < Walk::kVectors; ++which) {
      read_tile(vectors + which * kTile * across, across, [&](int step, int n) {
        const bool is_there = begin + step < rows.length && n < walk.width();
        return is_there ? walk.vector(rows, which, begin + step, n) : 0;
      });
    }
#pragma unroll
    for (int which = 0; which < Walk::kScalars; ++which) {
      read_tile(scalars + which * kTile * block_rows, block_rows, [&](int step, int n) {
        const bool is_there = begin + step < rows.length && first + n < walk.height();
        return is_there ? walk.scalar(rows, which, begin + step, first + n) : 0;
      });
    }
    __syncthreads();
    for (int step = 0; step < kTile; ++step) {
      walk.step(row_lanes, state, Walk::kBack ? kTile - 1 - step : step);
    }
    __syncthreads();
#pragma unroll
    for (int which = 0; which < Walk::kResults; ++which) {
      for_each_place(kTile, block_rows, [&](int64_t step, int n) {
        if (begin + step >= rows.length || first + n >= walk.height()) return;
        walk.store(rows, which, begin + step, first + n,
                   results[(which * kTile + step) * block_rows + n]);
      });
    }
  }
}

template <typename Walk>
void launch_walk(const Walk& walk, Stream stream) {
  const auto launch_with = [&](auto n, int lanes) {
    const int rows = kScanThreads / lanes;
    const int numbers = Walk::kVectors * n * lanes + (Walk::kScalars + Walk::kResults) * rows;
    launch(walk_kernel<Walk, n>, walk.p.batch * walk.p.heads * parts_of(walk.height(), rows),
           kScanThreads, sizeof(float) * static_cast<size_t>(kTile * numbers), stream, walk, lanes);
  };
  if constexpr (Walk::kVectors > 3) {  // with reads, up to 256 keys
    with_lanes<4, 8>(walk.width(), 8, launch_with);
  } else {
    with_lanes<4, 8, 16, 32>(walk.width(), 8, launch_with);
  }
}

// The gradients of numbers of a head: of beta the sums of du e, of a log decay those of g.
template <typename T>
__global__ void head_sums_kernel(MatrixWalk<T> walk, bool of_beta) {
  const MatrixScan<T>& p = walk.p;
  const int64_t row = int64_t{blockIdx.x} * (kScanThreads / 32) + threadIdx.x / 32;
  const int64_t of_example = p.length * p.heads;
  const bool is_there = row < p.batch * of_example;
  const int64_t place = row / p.heads, width = of_beta ? p.values : p.keys;
  const bool is_read =
      is_there && (p.lengths == nullptr || place % p.length < p.lengths[row / of_example]);
  float sum = 0;
  for (int64_t n = threadIdx.x % 32; is_read && n < width; n += 32) {
    const int64_t at = row * width + n;
    if (!of_beta) {
      sum += walk.scratch.g[at];
    } else if (p.delta) {
      sum = fmaf(walk.scratch.du[at], walk.scratch.e[at], sum);
    } else {
      const T v = p.v[place * p.v_row + row % p.heads * p.values + n];
      sum = fmaf(walk.scratch.du[at], static_cast<float>(v), sum);
    }
  }
  sum = sum_of_lanes(sum, 32);
  if (!is_there || threadIdx.x % 32 != 0) return;
  (of_beta ? walk.to.grad_beta : walk.to.grad_log_decay)[row] = sum;
}

template <typename T>
void launch_head_sums(const MatrixWalk<T>& walk, bool of_beta, Stream stream) {
  const int64_t rows = walk.p.batch * walk.p.length * walk.p.heads;
  launch(head_sums_kernel<T>, parts_of(rows, kScanThreads / 32), kScanThreads, 0, stream, walk,
         of_beta);
}

template <bool kDelta, bool kReads, typename T>
void launch_walks_back(const MatrixWalk<T>& walk, Stream stream) {
  if constexpr (kDelta) launch_walk(ForwardWalk<T, kReads, true>{{walk}}, stream);
  launch_walk(ValuesWalk<T, kReads>{{walk}}, stream);
  launch_walk(QueriesWalk<T, kDelta, kReads>{{walk}}, stream);
  launch_walk(KeysWalk<T, kDelta, kReads>{{walk}}, stream);
}

}  // namespace

template <typename T>
void matrix_scan_forward(const MatrixScan<T>& p, T* o, Stream stream) {
  const MatrixWalk<T> walk = {.p = p, .o = o};
  if (p.r != nullptr) {
    launch_walk(ForwardWalk<T, true, false>{{walk}}, stream);
  } else {
    launch_walk(ForwardWalk<T, false, false>{{walk}}, stream);
  }
}

template <typename T>
int64_t matrix_scan_scratch(const MatrixScan<T>& p) {
  return 2 * p.batch * p.length * p.heads * (p.keys + p.values);
}

template <typename T>
void matrix_scan_backward(const MatrixScanBackward<T>& problem, float* scratch, Stream stream) {
  const MatrixScan<T>& p = problem.problem;
  const int64_t rows = p.batch * p.length * p.heads;
  const bool decays_of_rows = p.decays == p.keys;
  float* const w = scratch + 2 * rows * p.values;
  const MatrixWalk<T> walk = {
      .p = p,
      .to = problem,
      .scratch = {.e = scratch,
                  .du = scratch + rows * p.values,
                  .w = w,
                  .g = decays_of_rows ? problem.grad_log_decay : w + rows * p.keys}};
  if (!p.delta) {
    launch_walks_back<false, false>(walk, stream);
  } else if (p.r == nullptr) {
    launch_walks_back<true, false>(walk, stream);
  } else {
    launch_walks_back<true, true>(walk, stream);
  }
  if (!decays_of_rows) launch_head_sums(walk, /*of_beta=*/false, stream);
  if (p.beta != nullptr) launch_head_sums(walk, /*of_beta=*/true, stream);
}

template void matrix_scan_forward(const MatrixScan<float>&, float*, Stream);
template void matrix_scan_forward(const MatrixScan<Bf16>&, Bf16*, Stream);
template int64_t matrix_scan_scratch(const MatrixScan<float>&);
template int64_t matrix_scan_scratch(const MatrixScan<Bf16>&);
template void matrix_scan_backward(const MatrixScanBackward<float>&, float*, Stream);
template void matrix_scan_backward(const MatrixScanBackward<Bf16>&, float*, Stream);

}  // namespace lra::kernels::cuda
