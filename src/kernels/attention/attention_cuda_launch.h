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

template <typename T>
inline bool is_aligned(const HeadView<const T>& view) {
  constexpr int64_t kVector = 16 / sizeof(T);
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 && view.batch_stride % kVector == 0 &&
         view.head_stride % kVector == 0 && view.row_stride % kVector == 0;
}

template <typename T>
CudaAttention described(const AttentionProblem& problem,
                        std::initializer_list<HeadView<const T>> inputs) {
  const AttentionShape& shape = problem.shape;
  const AttentionVisibility& visible = problem.visible;
  if (shape.head_dim > kMaxHeadDim) {
    throw Error({.where = "attention on a GPU",
                 .what = "heads are " + std::to_string(shape.head_dim) + " wide",
                 .expected = "at most " + std::to_string(kMaxHeadDim),
                 .advice = "take more heads, or compute on the CPU, without --device"});
  }
  CudaAttention p;
  p.heads = static_cast<int>(shape.heads);
  p.head_dim = static_cast<int>(shape.head_dim);
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
    p.lists = static_cast<int>(visible.blocks->lists);
    p.queries.block = static_cast<int>(visible.blocks->query_block);
    p.keys.block = static_cast<int>(visible.blocks->key_block);
    p.queries.offsets = visible.blocks->offsets;
    p.queries.blocks = visible.blocks->key_blocks;
  }
  if (visible.runs != nullptr) p.runs = *visible.runs;
  p.scale = static_cast<float>(problem.scale);
  p.dropout_threshold = lra::dropout_threshold(problem.dropout_rate);
  p.dropout_scale = lra::dropout_scale(problem.dropout_rate);
  p.dropout_key = problem.dropout_key;
  p.aligned = shape.head_dim % (16 / int64_t{sizeof(T)}) == 0;
  for (const auto& view : inputs) p.aligned = p.aligned && is_aligned(view);
  return p;
}

// Calls use(constant) with head_dim rounded up to a width that is compiled.
template <typename F>
void with_width(int head_dim, F use) {
  if (head_dim <= 16) return use(std::integral_constant<int, 16>());
  if (head_dim <= 32) return use(std::integral_constant<int, 32>());
  if (head_dim <= 64) return use(std::integral_constant<int, 64>());
  if (head_dim <= 80) return use(std::integral_constant<int, 80>());
  return use(std::integral_constant<int, 128>());
}

inline int64_t num_tiles(const CudaAttention& p, const Axis& rows) {
  return p.planes * blocks_of(rows) * tiles_of_block(rows);
}

}  // namespace lra::kernels::cuda
