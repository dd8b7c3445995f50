// The selective scan of kernels/scan/selective_scan.h on a CUDA device. Some lanes of a warp share
// a channel of an example, with M of its states each, and walk along the sequence; every step ends
// in a sum over these lanes. The backward pass walks forward first and keeps the states before each
// chunk, of 64 / M positions; then it goes back chunk by chunk, computes the states in it again and
// keeps them in shared memory.
//
// The gradients of b and c are sums over channels: those of a block are added there, and the blocks
// in their order. Those of parameters are sums over time, chunk by chunk, and then over examples.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sums.h"
#include "kernels/scan/selective_scan_cuda_block.h"

namespace lra::kernels::cuda {
namespace {

template <typename T, int M>
__global__ void selective_forward_kernel(SelectiveScan<T> p, int lanes, T* y) {
  const SelectiveBlock<T, M> block(p, lanes);
  SelectiveStates<M> states(block);
  block.clear_padding(y);
  for (int64_t begin = 0; begin < block.rows.length; begin += kChunk<M>) {
    block.read(begin);
    for (int step = 0; step < block.steps(begin); ++step) {
      const float sum = sum_of_lanes(states.advance(block, step), lanes);
      if (!block.writes()) continue;
      y[block.of_x(begin + step)] = T(fmaf(block.skip, block.of_channel(block.x, step), sum));
    }
  }
}

// Sums of a thread over time, for the gradients of its parameters.
template <int M>
struct ParameterSums {
  float a[M], bias[M], dt_bias = 0, skip = 0;

  __device__ ParameterSums() {
#pragma unroll
    for (int m = 0; m < M; ++m) a[m] = bias[m] = 0;
  }

  __device__ void add(const ParameterSums& other) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
      a[m] += other.a[m];
      bias[m] += other.bias[m];
    }
    dt_bias += other.dt_bias;
    skip += other.skip;
  }

  // Writes them to gradients as selective_parameters() counts them.
  template <typename T>
  __device__ void write(const SelectiveBlock<T, M>& block, float* to) const {
    const SelectiveScan<T>& p = block.p;
    if (!block.is_there()) return;
    to += block.channel();
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const int64_t state = block.state + m;
      if (state >= p.states) continue;
      to[state * p.channels] = a[m];
      to[(p.states + state) * p.channels] = bias[m];
    }
    if (!block.writes()) return;
    to[2 * p.states * p.channels] = dt_bias;
    to[(2 * p.states + 1) * p.channels] = skip;
  }
};

// Scratch in memory of the device: states before each chunk [blocks, chunks, M, kScanThreads], and
// shares of gradients, of b and c [blocks of a group, batch, length, groups, states] and of
// parameters [batch, selective_parameters()].
struct Scratch {
  float *starts, *b, *c, *parameters;
  int64_t blocks_of_group, of_b;  // of_b: numbers in a share
};

// One block of the backward pass.
template <typename T, int M>
class BackwardBlock {
 public:
  __device__ BackwardBlock(const SelectiveScanBackward<T>& p, int lanes, const Scratch& scratch)
      : p_(p), block_(p.problem, lanes), states_(block_) {
    const int64_t share = blockIdx.x % scratch.blocks_of_group * scratch.of_b;
    share_b_ = scratch.b + share;
    share_c_ = scratch.c + share;
    starts_ = scratch.starts + blockIdx.x * parts_of(p.problem.length, kChunk<M>) * kStart;
    block_.clear_padding(p.grad_x);
    block_.clear_padding(p.grad_dt);
    block_.clear_padding_of_states(share_b_);
    block_.clear_padding_of_states(share_c_);
  }

  __device__ int64_t length() const { return block_.rows.length; }

  // Walks over the chunk from `begin` on, and keeps the states before it.
  __device__ void walk(int64_t begin) {
#pragma unroll
    for (int m = 0; m < M; ++m) start(begin, m) = states_.h[m];
    block_.read(begin);
    for (int step = 0; step < block_.steps(begin); ++step) states_.advance(block_, step);
  }

  // Goes back over the chunk.
  __device__ void walk_back(int64_t begin) {
    const int steps = block_.steps(begin);
    block_.read(begin, p_.grad);
    keep_states(begin, steps);
    __syncthreads();
    block_.sum_channels(begin, share_c_, [&](int n) { return block_.grad[n]; });
    __syncthreads();
    ParameterSums<M> sums;
    for (int step = steps - 1; step >= 0; --step) step_back(begin, step, sums);
    sums_.add(sums);
    __syncthreads();
    block_.sum_channels(begin, share_b_, [&](int n) { return block_.dt[n] * block_.x[n]; });
  }

  __device__ void write_sums(float* parameters) const {
    sums_.write(block_, parameters + block_.task.example * selective_parameters(p_.problem));
  }

 private:
  static constexpr int kStart = M * kScanThreads;

  __device__ float& start(int64_t begin, int m) const {
    return starts_[begin / kChunk<M> * kStart + m * kScanThreads + threadIdx.x];
  }

  // Puts the states before and after each step into the slots.
  __device__ void keep_states(int64_t begin, int steps) {
#pragma unroll
    for (int m = 0; m < M; ++m) block_.own_slot(0, m) = states_.h[m] = start(begin, m);
    for (int step = 0; step < steps; ++step) {
      states_.advance(block_, step);
#pragma unroll
      for (int m = 0; m < M; ++m) block_.own_slot(step + 1, m) = states_.h[m];
    }
  }

  // The gradients of states take the place of those after the step.
  __device__ void step_back(int64_t begin, int step, ParameterSums<M>& sums) {
    const float x = block_.of_channel(block_.x, step), dt = block_.of_channel(block_.dt, step);
    const float grad = block_.of_channel(block_.grad, step), u = dt * x;
    float b[M], c[M], inputs = 0, rates = 0;
    block_.of_states(b, block_.b, step);
    block_.of_states(c, block_.c, step);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      const float decay = fast_exp2(dt * states_.a[m]);
      r_[m] = fmaf(grad, c[m], r_[m]);
      inputs = fmaf(r_[m], b[m] + states_.bias[m], inputs);
      sums.bias[m] = fmaf(r_[m], u, sums.bias[m]);
      const float of_exponent = r_[m] * (decay * block_.own_slot(step, m));
      rates = fmaf(of_exponent, states_.a[m], rates);
      sums.a[m] = fmaf(of_exponent, dt, sums.a[m]);
      block_.own_slot(step + 1, m) = r_[m];
      r_[m] *= decay;
    }
    inputs = sum_of_lanes(inputs, block_.lanes);
    rates = sum_of_lanes(rates, block_.lanes) * std::numbers::ln2_v<float>;
    const float of_raw_dt = fmaf(x, inputs, rates) * block_.of_channel(block_.slope, step);
    sums.dt_bias += of_raw_dt;
    sums.skip = fmaf(grad, x, sums.skip);
    if (!block_.writes()) return;
    p_.grad_x[block_.of_x(begin + step)] = T(fmaf(dt, inputs, block_.skip * grad));
    p_.grad_dt[block_.of_x(begin + step)] = T(of_raw_dt);
  }

  const SelectiveScanBackward<T>& p_;
  const SelectiveBlock<T, M> block_;
  SelectiveStates<M> states_;
  float r_[M] = {};  // gradients of the states before the last step done
  ParameterSums<M> sums_;
  float *share_b_, *share_c_, *starts_;
};

template <typename T, int M>
__global__ void selective_backward_kernel(SelectiveScanBackward<T> p, int lanes, Scratch scratch) {
  BackwardBlock<T, M> block(p, lanes, scratch);
  int64_t begin = 0;
  for (; begin < block.length(); begin += kChunk<M>) block.walk(begin);
  while (begin > 0) block.walk_back(begin -= kChunk<M>);
  block.write_sums(scratch.parameters);
}

// Numbers of floats in the scratch.
template <typename T, int M>
struct ScratchSizes {
  ScratchSizes(const SelectiveScan<T>& p, int lanes)
      : blocks_of_group(SelectiveTasks<T>(p, kScanThreads / lanes).of_group),
        blocks(p.batch * p.groups * blocks_of_group),
        starts(blocks * parts_of(p.length, kChunk<M>) * M * kScanThreads),
        of_b(p.batch * p.length * p.groups * p.states),
        all(starts + 2 * blocks_of_group * of_b + p.batch * selective_parameters(p)) {}

  Scratch at(float* memory) const {
    const int64_t shares = blocks_of_group * of_b;
    float* const b = memory + starts;
    return {memory, b, b + shares, b + 2 * shares, blocks_of_group, of_b};
  }

  int64_t blocks_of_group, blocks, starts, of_b, all;
};

// Four states in a lane: with more, few sequences would leave the device with little to do.
template <typename T, typename F>
auto with_selective_lanes(const SelectiveScan<T>& p, const F& use) {
  LRA_CHECK(p.groups > 0 && p.channels % p.groups == 0);
  return with_lanes<4, 8, 32>(p.states, 4, use);
}

}  // namespace

template <typename T>
void selective_scan_forward(const SelectiveScan<T>& p, T* y, Stream stream) {
  with_selective_lanes(p, [&](auto m, int lanes) {
    launch(selective_forward_kernel<T, m>, ScratchSizes<T, m>(p, lanes).blocks, kScanThreads,
           SelectiveBlock<T, m>::shared_bytes(lanes, /*backward=*/false), stream, p, lanes, y);
  });
}

template <typename T>
int64_t selective_scan_scratch(const SelectiveScan<T>& p) {
  return with_selective_lanes(p,
                              [&](auto m, int lanes) { return ScratchSizes<T, m>(p, lanes).all; });
}

template <typename T>
void selective_scan_backward(const SelectiveScanBackward<T>& problem, float* scratch,
                             Stream stream) {
  const SelectiveScan<T>& p = problem.problem;
  with_selective_lanes(p, [&](auto m, int lanes) {
    const ScratchSizes<T, m> sizes(p, lanes);
    const Scratch at = sizes.at(scratch);
    launch(selective_backward_kernel<T, m>, sizes.blocks, kScanThreads,
           SelectiveBlock<T, m>::shared_bytes(lanes, /*backward=*/true), stream, problem, lanes,
           at);
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
