// An attention problem as the kernels of a CUDA device take it, and the sizes they are compiled
// for.
#pragma once

#include <algorithm>
#include <type_traits>

#include "base/rng.h"
#include "kernels/attention/attention_cuda_columns.h"
#include "kernels/cuda/launch.h"

namespace lra::kernels::cuda {

// A second slot of tiles hides the latency of memory; without it more blocks fit at the same time.
template <typename T, int E>
constexpr int kSlots = sizeof(T) * E <= 160 ? 2 : 1;

// Blocks that a multiprocessor is to hold at the same time: three keep to 168 registers a thread.
// An H100 made 12 % more steps a second with them than with the two that fit otherwise.
template <typename T, int E>
constexpr int kBlocks = E <= 64 && sizeof(T) == 2 ? 3 : 1;

template <typename T>
inline bool is_aligned(const HeadView<const T>& view) {
  constexpr int64_t kVector = 16 / sizeof(T);
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && view.batch_stride % kVector == 0 &&
         view.head_stride % kVector == 0 && view.row_stride % kVector == 0;
}

template <typename T>
CudaAttention described(const AttentionProblem& problem, ListForm form,
                        const ScoreBias<const float>& bias,
                        std::initializer_list<HeadView<const T>> inputs) {
  const AttentionShape& shape = problem.shape;
  const AttentionVisibility& visible = problem.visible;
  const int64_t widest = std::max(shape.head_dim, shape.width_of_values());
  if (widest > kMaxHeadDim) {
    throw Error({.where = "attention on a GPU",
                 .what = "heads are " + std::to_string(widest) + " wide",
                 .expected = "at most " + std::to_string(kMaxHeadDim),
                 .advice = "take more heads, or compute on the CPU, without --device"});
  }
  CudaAttention p;
  p.heads = static_cast<int>(shape.heads);
  p.head_dim = static_cast<int>(shape.head_dim);
  p.value_dim = static_cast<int>(shape.width_of_values());
  p.planes = shape.batch * shape.heads;
  const auto query_length = static_cast<int>(shape.query_length);
  const auto key_length = static_cast<int>(shape.key_length);
  const int64_t longest = std::max(shape.query_length, shape.key_length);
  const auto left = static_cast<int>(std::min(visible.left, longest));
  const auto right = static_cast<int>(std::min(visible.right, longest));
  p.queries = {.length = query_length,
               .block = query_length,
               .mask = visible.query_mask,
               .before = left,
               .after = right};
  p.keys = {.length = key_length,
            .block = key_length,
            .mask = visible.key_mask,
            .before = right,
            .after = left};
  if (visible.blocks != nullptr) {
    const auto of_queries = static_cast<int>(visible.blocks->query_block);
    const auto of_keys = static_cast<int>(visible.blocks->key_block);
    if (form == ListForm::kStairs) {  // tiles need not keep to blocks
      p.queries.step = p.keys.column_step = of_queries;
      p.keys.step = p.queries.column_step = of_keys;
    } else {
      p.queries.block = of_queries;
      p.keys.block = of_keys;
      p.diagonal = form == ListForm::kDiagonal;
    }
    if (form == ListForm::kListed) {
      p.lists = static_cast<int>(visible.blocks->lists);
      p.queries.offsets = visible.blocks->offsets;
      p.queries.blocks = visible.blocks->key_blocks;
    }
  }
  if (visible.runs != nullptr) p.runs = *visible.runs;
  p.scale = static_cast<float>(problem.scale);
  p.laplace = problem.weights == AttentionWeights::kLaplace;
  p.shares_table = bias.data != nullptr && !bias.is_relative();
  p.dropout_threshold = lra::dropout_threshold(problem.dropout_rate);
  p.dropout_scale = lra::dropout_scale(problem.dropout_rate);
  p.dropout_key = problem.dropout_key;
  constexpr int kVector = 16 / sizeof(T);
  p.aligned = p.head_dim % kVector == 0 && p.value_dim % kVector == 0;
  for (const auto& view : inputs) p.aligned = p.aligned && is_aligned(view);
  return p;
}

// Calls use(constant) with the width of the widest rows, rounded up to one that is compiled.
template <typename F>
void with_width(const CudaAttention& p, F use) {
  const int width = std::max(p.head_dim, p.value_dim);
  if (width <= 16) return use(std::integral_constant<int, 16>());
  if (width <= 32) return use(std::integral_constant<int, 32>());
  if (width <= 64) return use(std::integral_constant<int, 64>());
  if (width <= 80) return use(std::integral_constant<int, 80>());
  return use(std::integral_constant<int, 128>());
}

inline int64_t num_tiles(const CudaAttention& p, const Axis& rows) {
  return p.planes * blocks_of(rows) * tiles_of_block(rows);
}

}  // namespace lra::kernels::cuda
