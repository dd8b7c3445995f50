// The selective scan of kernels/scan/selective_scan.h on a CUDA device. Some lanes of a warp share
// a channel of an example, with M of its states each, and walk along the sequence; every step ends
// in a sum over these lanes. The backward pass walks forward first and keeps the states before each
// chunk, of 64 / (P M) positions; then it goes back chunk by chunk, computes the states in it again
// and keeps them in shared memory.
//
// The gradients of b and c are sums over channels: those of a block are added there, and the blocks
// in their order. Those of parameters are sums over time, chunk by chunk, and then over examples.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sums.h"
#include "kernels/scan/selective_scan_cuda_block.h"

namespace lra::kernels::cuda {
namespace {

template <typename T, int M, int P>
__global__ void selective_forward_kernel(SelectiveScan<T> p, int lanes, T* y) {
  const SelectiveBlock<T, M, P> block(p, lanes);
  SelectiveStates<M, P> states(block);
  block.clear_padding(y);
  for (int64_t begin = 0; begin < block.rows.length; begin += kChunk<P * M>) {
    block.read(begin);
    for (int step = 0; step < block.steps(begin); ++step) {
      const float sum = sum_of_lanes(states.advance(block, step), lanes);
      if (!block.writes()) continue;
      y[block.of_x(begin + step)] = T(fmaf(block.skip, block.of_channel(block.x, step), sum));
    }
  }
}

// Sums of a thread over time, for the gradients of its parameters.
template <int M, int P>
struct ParameterSums {
  static constexpr int N = P * M;

  float pole[N], bias[N], dt_bias = 0, skip = 0;

  __device__ ParameterSums() {
#pragma unroll
    for (int m = 0; m < N; ++m) pole[m] = bias[m] = 0;
  }

  __device__ void add(const ParameterSums& other) {
#pragma unroll
    for (int m = 0; m < N; ++m) {
      pole[m] += other.pole[m];
      bias[m] += other.bias[m];
    }
    dt_bias += other.dt_bias;
    skip += other.skip;
  }

  // Writes them to gradients as selective_parameters() counts them.
  template <typename T>
  __device__ void write(const SelectiveBlock<T, M, P>& block, float* to) const {
    const SelectiveScan<T>& p = block.p;
    if (!block.is_there()) return;
    to += block.channel();
#pragma unroll
    for (int m = 0; m < N; ++m) {
      const int64_t state = block.state + m % M, row = m / M * p.states + state;
      if (state >= p.states) continue;
      to[row * p.channels] = pole[m];
      to[(P * p.states + row) * p.channels] = bias[m];
    }
    if (!block.writes()) return;
    to[2 * P * p.states * p.channels] = dt_bias;
    to[(2 * P * p.states + 1) * p.channels] = skip;
  }
};

// Scratch in memory of the device: states before each chunk [blocks, chunks, P M, kScanThreads],
// and shares of gradients, of b and c [blocks of a group, batch, length, groups, P states] and of
// parameters [batch, selective_parameters()].
struct Scratch {
  float *starts, *b, *c, *parameters;
  int64_t blocks_of_group, of_b;  // of_b: numbers in a share
};

// One block of the backward pass.
template <typename T, int M, int P>
class BackwardBlock {
  static constexpr int N = P * M, kStart = N * kScanThreads;

 public:
  __device__ BackwardBlock(const SelectiveScanBackward<T>& p, int lanes, const Scratch& scratch)
      : p_(p), block_(p.problem, lanes), states_(block_) {
    const int64_t share = blockIdx.x % scratch.blocks_of_group * scratch.of_b;
    share_b_ = scratch.b + share;
    share_c_ = scratch.c + share;
    starts_ = scratch.starts + blockIdx.x * parts_of(p.problem.length, kChunk<N>) * kStart;
    block_.clear_padding(p.grad_x);
    block_.clear_padding(p.grad_dt);
    block_.clear_padding_of_states(share_b_);
    block_.clear_padding_of_states(share_c_);
  }

  __device__ int64_t length() const { return block_.rows.length; }

  // Walks over the chunk from `begin` on, and keeps the states before it.
  __device__ void walk(int64_t begin) {
#pragma unroll
    for (int m = 0; m < N; ++m) start(begin, m) = states_.h[m];
    block_.read(begin);
    for (int step = 0; step < block_.steps(begin); ++step) states_.advance(block_, step);
  }

  // Goes back over the chunk.
  __device__ void walk_back(int64_t begin) {
    const int steps = block_.steps(begin);
    block_.read(begin, p_.grad);
    keep_states(begin, steps);
    __syncthreads();
    block_.sum_channels(begin, share_c_, /*conjugate=*/true, [&](int n) { return block_.grad[n]; });
    __syncthreads();
    ParameterSums<M, P> sums;
    for (int step = steps - 1; step >= 0; --step) step_back(begin, step, sums);
    sums_.add(sums);
    __syncthreads();
    block_.sum_channels(begin, share_b_, /*conjugate=*/false,
                        [&](int n) { return block_.dt[n] * block_.x[n]; });
  }

  __device__ void write_sums(float* parameters) const {
    sums_.write(block_, parameters + block_.task.example * selective_parameters(p_.problem));
  }

 private:
  __device__ float& start(int64_t begin, int m) const {
    return starts_[begin / kChunk<N> * kStart + m * kScanThreads + threadIdx.x];
  }

  // Puts the states before and after each step into the slots.
  __device__ void keep_states(int64_t begin, int steps) {
#pragma unroll
    for (int m = 0; m < N; ++m) block_.own_slot(0, m) = states_.h[m] = start(begin, m);
    for (int step = 0; step < steps; ++step) {
      states_.advance(block_, step);
#pragma unroll
      for (int m = 0; m < N; ++m) block_.own_slot(step + 1, m) = states_.h[m];
    }
  }

  // The gradients of states take the place of those after the step.
  __device__ void step_back(int64_t begin, int step, ParameterSums<M, P>& sums) {
    const float x = block_.of_channel(block_.x, step), dt = block_.of_channel(block_.dt, step);
    const float grad = block_.of_channel(block_.grad, step), u = dt * x;
    float b[N], c[N], inputs = 0, rates = 0;
    block_.of_states(b, block_.b, step);
    block_.of_states(c, block_.c, step);
#pragma unroll
    for (int m = 0; m < N; ++m) {
      r_[m] = fmaf(m < M ? grad : -grad, c[m], r_[m]);
      inputs = fmaf(r_[m], b[m] + states_.bias[m], inputs);
      sums.bias[m] = fmaf(r_[m], u, sums.bias[m]);
    }
#pragma unroll
    for (int m = 0; m < M; ++m) rates += state_back(dt, step, m, sums);
    inputs = sum_of_lanes(inputs, block_.lanes);
    rates = sum_of_lanes(rates, block_.lanes) * std::numbers::ln2_v<float>;
    const float of_raw_dt = fmaf(x, inputs, rates) * block_.of_channel(block_.slope, step);
    sums.dt_bias += of_raw_dt;
    sums.skip = fmaf(grad, x, sums.skip);
    if (!block_.writes()) return;
    p_.grad_x[block_.of_x(begin + step)] = T(fmaf(dt, inputs, block_.skip * grad));
    p_.grad_dt[block_.of_x(begin + step)] = T(of_raw_dt);
  }

  // The part of state m in that; returns its share of a step's gradient, in units of ln 2.
  __device__ float state_back(float dt, int step, int m, ParameterSums<M, P>& sums) {
    const SelectiveDecay decay = states_.decay(dt, m);
    const float re = block_.own_slot(step, m), r_re = r_[m];
    if constexpr (P == 1) {
      const float of_exponent = r_re * (decay.re * re);
      sums.pole[m] = fmaf(of_exponent, dt, sums.pole[m]);
      block_.own_slot(step + 1, m) = r_re;
      r_[m] *= decay.re;
      return of_exponent * states_.pole[m];
    } else {
      constexpr float kPiInLn2 = std::numbers::pi_v<float> * std::numbers::log2e_v<float>;
      const int i = M + m;
      const float im = block_.own_slot(step, i), r_im = r_[i];
      block_.own_slot(step + 1, m) = r_re;
      block_.own_slot(step + 1, i) = r_im;
      // r times the decay's conjugate, and that times the state's.
      r_[m] = fmaf(r_re, decay.re, r_im * decay.im);
      r_[i] = fmaf(r_im, decay.re, -r_re * decay.im);
      const float of_re = fmaf(r_[m], re, r_[i] * im), of_im = fmaf(r_[i], re, -r_[m] * im);
      sums.pole[m] = fmaf(of_re, dt, sums.pole[m]);
      sums.pole[i] = fmaf(of_im, dt, sums.pole[i]);
      return fmaf(of_re, states_.pole[m], of_im * (kPiInLn2 * states_.pole[i]));
    }
  }

  const SelectiveScanBackward<T>& p_;
  const SelectiveBlock<T, M, P> block_;
  SelectiveStates<M, P> states_;
  float r_[N] = {};  // gradients of the states before the last step done
  ParameterSums<M, P> sums_;
  float *share_b_, *share_c_, *starts_;
};

template <typename T, int M, int P>
__global__ void selective_backward_kernel(SelectiveScanBackward<T> p, int lanes, Scratch scratch) {
  BackwardBlock<T, M, P> block(p, lanes, scratch);
  int64_t begin = 0;
  for (; begin < block.length(); begin += kChunk<P * M>) block.walk(begin);
  while (begin > 0) block.walk_back(begin -= kChunk<P * M>);
  block.write_sums(scratch.parameters);
}

// Numbers of floats in the scratch.
template <typename T, int M, int P>
struct ScratchSizes {
  ScratchSizes(const SelectiveScan<T>& p, int lanes)
      : blocks_of_group(SelectiveTasks<T>(p, kScanThreads / lanes).of_group),
        blocks(p.batch * p.groups * blocks_of_group),
        starts(blocks * parts_of(p.length, kChunk<P * M>) * P * M * kScanThreads),
        of_b(p.batch * p.length * p.groups * P * p.states),
        all(starts + 2 * blocks_of_group * of_b + p.batch * selective_parameters(p)) {}

  Scratch at(float* memory) const {
    const int64_t shares = blocks_of_group * of_b;
    float* const b = memory + starts;
    return {memory, b, b + shares, b + 2 * shares, blocks_of_group, of_b};
  }

  int64_t blocks_of_group, blocks, starts, of_b, all;
};

// Calls use(M, P, lanes). Four states in a lane: with more, few sequences would leave the device
// with little to do.
template <typename T, typename F>
auto with_selective_lanes(const SelectiveScan<T>& p, const F& use) {
  LRA_CHECK(p.groups > 0 && p.channels % p.groups == 0);
  const auto with_planes = [&](auto planes) {
    return [&use, planes](auto m, int lanes) { return use(m, planes, lanes); };
  };
  if (p.frequency == nullptr) {
    return with_lanes<4, 8, 32>(p.states, 4, with_planes(std::integral_constant<int, 1>()));
  }
  return with_lanes<4, 8>(p.states, 4, with_planes(std::integral_constant<int, 2>()));
}

}  // namespace

template <typename T>
void selective_scan_forward(const SelectiveScan<T>& p, T* y, Stream stream) {
  with_selective_lanes(p, [&](auto m, auto planes, int lanes) {
    launch(selective_forward_kernel<T, m, planes>, ScratchSizes<T, m, planes>(p, lanes).blocks,
           kScanThreads, SelectiveBlock<T, m, planes>::shared_bytes(lanes, /*backward=*/false),
           stream, p, lanes, y);
  });
}

template <typename T>
int64_t selective_scan_scratch(const SelectiveScan<T>& p) {
  return with_selective_lanes(
      p, [&](auto m, auto planes, int lanes) { return ScratchSizes<T, m, planes>(p, lanes).all; });
}

template <typename T>
void selective_scan_backward(const SelectiveScanBackward<T>& problem, float* scratch,
                             Stream stream) {
  const SelectiveScan<T>& p = problem.problem;
  with_selective_lanes(p, [&](auto m, auto planes, int lanes) {
    const ScratchSizes<T, m, planes> sizes(p, lanes);
    const Scratch at = sizes.at(scratch);
    launch(selective_backward_kernel<T, m, planes>, sizes.blocks, kScanThreads,
           SelectiveBlock<T, m, planes>::shared_bytes(lanes, /*backward=*/true), stream, problem,
           lanes, at);
    sum_shares(sizes.blocks_of_group, sizes.of_b, at.b, problem.grad_b, stream);
    sum_shares(sizes.blocks_of_group, sizes.of_b, at.c, problem.grad_c, stream);
    sum_shares(p.batch, selective_parameters(p), at.parameters, problem.grad_parameters, stream);
  });
}

template void selective_scan_forward(const SelectiveScan<float>&, float*, Stream);
template void selective_scan_forward(const SelectiveScan<Bf16>&, Bf16*, Stream);
template int64_t selective_scan_scratch(const SelectiveScan<float>&);
template int64_t selective_scan_scratch(const SelectiveScan<Bf16>&);
template void selective_scan_backward(const SelectiveScanBackward<float>&, float*, Stream);
template void selective_scan_backward(const SelectiveScanBackward<Bf16>&, float*, Stream);

}  // namespace lra::kernels::cuda
