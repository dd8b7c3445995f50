// Speed of the kernels room on all threads: attention in GFLOP/s, elementwise passes in GB/s.
//
// Floating-point operations of attention are counted for the visible scores alone: 4 E each forward
// and 10 E backward (the forward pass made again is not counted), so a kernel gains nothing from
// scores it computes and hides. Bytes are those that a pass must read and write.
//
//   bench_kernels --benchmark_filter=attention
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "kernels/adam/adam.h"
#include "kernels/attention/attention.h"
#include "kernels/choice.h"
#include "kernels/feature_attention/feature_attention.h"
#include "kernels/pointwise/pointwise.h"

namespace lra::kernels {
namespace {

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = static_cast<float>(random.uniform() * 2 - 1);
  return x;
}

struct AttentionSetup {
  AttentionShape shape{4, 4, 0, 0, 64};
  double dropout_rate = 0;
  bool causal = false;
  int64_t block = 0;  // 0: dense; else a block-diagonal of that size
};

// A problem on [B, L, H, E] tensors, as the projections leave them. T is float or Bf16.
template <typename T>
class AttentionBench {
 public:
  explicit AttentionBench(const AttentionSetup& setup) : setup_(setup) {
    const auto& [b, h, length, keys, dim, value_dim] = setup.shape;
    const int64_t count = b * h * length * dim;
    const std::vector<float> values = random_floats(count, 1);
    for (auto* x : {&q_, &k_, &v_, &grad_out_}) x->assign(values.begin(), values.end());
    for (auto* x : {&out_, &grad_q_, &grad_k_, &grad_v_}) x->resize(static_cast<size_t>(count));
    for (auto* x : {&largest_, &sum_}) x->resize(static_cast<size_t>(b * h * length));
    problem_.shape = setup.shape;
    problem_.scale = 1 / std::sqrt(static_cast<float>(dim));
    problem_.dropout_rate = setup.dropout_rate;
    problem_.dropout_key = 42;
    if (setup.causal) problem_.visible.right = 0;
    if (setup.block > 0) make_block_diagonal();
  }

  void forward() {
    attention_forward<T>(
        problem_,
        {view(q_), view(k_), view(v_), mutable_view(out_), {largest_.data(), sum_.data()}});
  }
  void backward() {
    attention_backward<T>(problem_, {view(q_),
                                     view(k_),
                                     view(v_),
                                     view(out_),
                                     view(grad_out_),
                                     {largest_.data(), sum_.data()},
                                     mutable_view(grad_q_),
                                     mutable_view(grad_k_),
                                     mutable_view(grad_v_)});
  }

  double visible_scores() const {
    const auto length = static_cast<double>(setup_.shape.query_length);
    const auto planes = static_cast<double>(setup_.shape.batch * setup_.shape.heads);
    if (setup_.block > 0) return planes * length * static_cast<double>(setup_.block);
    return planes * (setup_.causal ? length * (length + 1) / 2 : length * length);
  }

 private:
  void make_block_diagonal() {
    const int64_t blocks = (setup_.shape.query_length + setup_.block - 1) / setup_.block;
    for (int64_t n = 0; n < blocks; ++n) {
      offsets_.push_back(n);
      key_blocks_.push_back(static_cast<int32_t>(n));
    }
    offsets_.push_back(blocks);
    lists_ = {setup_.block, setup_.block, 1, offsets_.data(), key_blocks_.data()};
    problem_.visible.blocks = &lists_;
  }

  HeadView<const T> view(const std::vector<T>& x) const {
    const auto& [b, h, length, keys, dim, value_dim] = setup_.shape;
    return {x.data(), length * h * dim, dim, h * dim};
  }
  HeadView<T> mutable_view(std::vector<T>& x) const {
    const HeadView<const T> same = view(x);
    return {x.data(), same.batch_stride, same.head_stride, same.row_stride};
  }

  AttentionSetup setup_;
  AttentionProblem problem_;
  BlockLists lists_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> key_blocks_;
  std::vector<T> q_, k_, v_, grad_out_, out_, grad_q_, grad_k_, grad_v_;
  std::vector<float> largest_, sum_;
};

template <typename T>
void attention(benchmark::State& state, AttentionSetup setup, bool with_backward) {
  setup.shape.query_length = setup.shape.key_length = state.range(0);
  AttentionBench<T> bench(setup);
  bench.forward();
  for (auto _ : state) {
    bench.forward();
    if (with_backward) bench.backward();
  }
  const double flops =
      bench.visible_scores() * static_cast<double>(setup.shape.head_dim) * (with_backward ? 14 : 4);
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.SetLabel(isa_name(
      choose(std::is_same_v<T, Bf16> ? Op::kAttentionForwardBf16 : Op::kAttentionForward)));
}

// The library's macros take plain names.
void attention_fp32(benchmark::State& state, const AttentionSetup& setup, bool with_backward) {
  attention<float>(state, setup, with_backward);
}
void attention_bf16(benchmark::State& state, const AttentionSetup& setup, bool with_backward) {
  attention<Bf16>(state, setup, with_backward);
}

AttentionSetup with_dropout(AttentionSetup setup) {
  setup.dropout_rate = 0.1;
  return setup;
}
AttentionSetup with_head_dim(int64_t dim) {
  AttentionSetup setup;
  setup.shape.head_dim = dim;
  return setup;
}

const AttentionSetup kDense;
const AttentionSetup kCausal{.causal = true};
const AttentionSetup kBlockDiagonal{.block = 50};

#define LRA_ATTENTION_BENCH(name, setup) LRA_ATTENTION_BENCH_OF(attention_fp32, name, setup)
#define LRA_ATTENTION_BENCH_OF(function, name, setup)               \
  BENCHMARK_CAPTURE(function, forward_##name, setup, false)         \
      ->Arg(1024)                                                   \
      ->Arg(4096)                                                   \
      ->UseRealTime()                                               \
      ->Unit(benchmark::kMillisecond);                              \
  BENCHMARK_CAPTURE(function, forward_backward_##name, setup, true) \
      ->Arg(1024)                                                   \
      ->Arg(4096)                                                   \
      ->UseRealTime()                                               \
      ->Unit(benchmark::kMillisecond)

LRA_ATTENTION_BENCH(dense, kDense);
LRA_ATTENTION_BENCH(dense_dropout, with_dropout(kDense));
LRA_ATTENTION_BENCH_OF(attention_bf16, dense, kDense);
LRA_ATTENTION_BENCH_OF(attention_bf16, dense_dropout, with_dropout(kDense));
LRA_ATTENTION_BENCH_OF(attention_bf16, block_diagonal_50, kBlockDiagonal);
LRA_ATTENTION_BENCH_OF(attention_bf16, dense_head_dim_32, with_head_dim(32));
LRA_ATTENTION_BENCH_OF(attention_bf16, dense_head_dim_8, with_head_dim(8));
LRA_ATTENTION_BENCH(causal, kCausal);
LRA_ATTENTION_BENCH(block_diagonal_50, kBlockDiagonal);
LRA_ATTENTION_BENCH(dense_head_dim_32, with_head_dim(32));
LRA_ATTENTION_BENCH(dense_head_dim_8, with_head_dim(8));

// Batch 4, 4 heads of width 64, elu features: forward alone, or both passes. Its operations are
// those of the products with the values: 4 E forward and 8 E backward for each number of the
// output.
template <typename T>
void feature_attention(benchmark::State& state, bool with_backward) {
  constexpr int64_t kBatch = 4, kHeads = 4, kWidth = 64;
  const int64_t length = state.range(0), count = kBatch * length * kHeads * kWidth;
  const auto values = random_floats(3 * count, 1), grads = random_floats(count, 2);
  const std::vector<T> qkv(values.begin(), values.end()), grad(grads.begin(), grads.end());
  std::vector<T> out(grad.size()), grad_qkv(qkv.size());
  std::vector<float> sums(kBatch * kHeads * kWidth * feature_sum_columns(kWidth));
  const FeatureAttention<T> problem{.batch = kBatch,
                                    .length = length,
                                    .heads = kHeads,
                                    .width = kWidth,
                                    .eps = 1e-6,
                                    .qkv = qkv.data()};
  for (auto _ : state) {
    feature_attention_forward<T>({problem, out.data(), sums.data()});
    if (with_backward) {
      feature_attention_backward<T>(
          {problem, out.data(), sums.data(), grad.data(), grad_qkv.data()});
    }
  }
  const double flops = static_cast<double>(count * kWidth) * (with_backward ? 12 : 4);
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.SetLabel(isa_name(
      choose(std::is_same_v<T, Bf16> ? Op::kFeatureAttentionBf16 : Op::kFeatureAttention)));
}
void feature_attention_fp32(benchmark::State& state, bool with_backward) {
  feature_attention<float>(state, with_backward);
}
void feature_attention_bf16(benchmark::State& state, bool with_backward) {
  feature_attention<Bf16>(state, with_backward);
}

#define LRA_FEATURE_BENCH(function, name, with_backward) \
  BENCHMARK_CAPTURE(function, name, with_backward)       \
      ->Arg(4096)                                        \
      ->UseRealTime()                                    \
      ->Unit(benchmark::kMillisecond)

LRA_FEATURE_BENCH(feature_attention_fp32, forward, false);
LRA_FEATURE_BENCH(feature_attention_fp32, forward_backward, true);
LRA_FEATURE_BENCH(feature_attention_bf16, forward, false);
LRA_FEATURE_BENCH(feature_attention_bf16, forward_backward, true);

// 32 Mi floats: 128 MiB an array, so that every byte comes from memory.
constexpr int64_t kElements = 32 << 20;

// Runs `pass` and reports the bytes of `arrays` arrays, each read or written once.
template <typename F>
void measure_bytes(benchmark::State& state, Op op, int arrays, const F& pass) {
  pass();
  for (auto _ : state) pass();
  const double bytes = static_cast<double>(kElements) * sizeof(float) * arrays;
  state.counters["B/s"] = benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate);
  state.SetLabel(isa_name(choose(op)));
}

void pointwise(benchmark::State& state, Op op) {
  const auto x = random_floats(kElements, 1), other = random_floats(kElements, 2);
  std::vector<float> y(static_cast<size_t>(kElements));
  const Dropout dropout{static_cast<double>(state.range(0)) / 100, 42};
  switch (op) {
    case Op::kGeluDropout:
      return measure_bytes(state, op, 2,
                           [&] { gelu_dropout(kElements, x.data(), y.data(), dropout); });
    case Op::kGeluDropoutBackward:
      return measure_bytes(state, op, 3, [&] {
        gelu_dropout_backward<float>(kElements, x.data(), other.data(), y.data(), nullptr, dropout);
      });
    case Op::kDropoutAdd:
      return measure_bytes(
          state, op, 3, [&] { dropout_add(kElements, other.data(), x.data(), y.data(), dropout); });
    default:
      return measure_bytes(state, op, 2,
                           [&] { apply_dropout(kElements, x.data(), y.data(), dropout); });
  }
}

void adam(benchmark::State& state) {
  auto p = random_floats(kElements, 1), m = random_floats(kElements, 2);
  auto v = std::vector<float>(static_cast<size_t>(kElements), 0.5f);
  const auto gradients = random_floats(kElements, 3);
  measure_bytes(state, Op::kAdamStep, 7, [&] {
    adam_step(kElements, p.data(), gradients.data(), m.data(), v.data(), AdamStep{});
  });
}

void gradient_norm(benchmark::State& state) {
  const auto gradients = random_floats(kElements, 3);
  measure_bytes(state, Op::kSumOfSquares, 1,
                [&] { benchmark::DoNotOptimize(sum_of_squares(kElements, gradients.data()).sum); });
}

// The argument is the dropout rate in percent.
#define LRA_POINTWISE_BENCH(name, op)    \
  BENCHMARK_CAPTURE(pointwise, name, op) \
      ->Arg(0)                           \
      ->Arg(10)                          \
      ->UseRealTime()                    \
      ->Unit(benchmark::kMillisecond)

LRA_POINTWISE_BENCH(gelu_dropout, Op::kGeluDropout);
LRA_POINTWISE_BENCH(gelu_dropout_backward, Op::kGeluDropoutBackward);
LRA_POINTWISE_BENCH(dropout_add, Op::kDropoutAdd);
LRA_POINTWISE_BENCH(apply_dropout, Op::kApplyDropout);
BENCHMARK(adam)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(gradient_norm)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lra::kernels

BENCHMARK_MAIN();
