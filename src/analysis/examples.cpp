#include "analysis/examples.h"

#include <algorithm>
#include <cmath>

#include "base/permutation.h"
#include "base/rng.h"

namespace lra::analysis {

int64_t image_side(const TaskShape& shape) {
  const auto side = std::llround(std::sqrt(static_cast<double>(shape.length)));
  const bool is_image = !shape.has_padding && shape.vocabulary == 256 && shape.num_towers == 1 &&
                        side * side == shape.length;
  return is_image ? side : 0;
}

std::vector<int64_t> drawn_examples(int64_t split_size, int64_t count) {
  std::vector<int64_t> examples;
  const Permutation drawn(static_cast<uint64_t>(split_size), derive_key(0, RandomUse::kAnalysis));
  for (int64_t i = 0; i < std::min(count, split_size); ++i) {
    examples.push_back(static_cast<int64_t>(drawn(static_cast<uint64_t>(i))));
  }
  return examples;
}

at::Tensor sequence_tokens(const tasks::Split& split, int64_t example, int64_t tower,
                           const TaskShape& shape) {
  const int64_t length = std::min(split.sequence_length(example, tower), shape.length);
  at::Tensor tokens_1L = at::empty({1, length}, at::kInt);
  split.read_tokens(example, tower,
                    {tokens_1L.mutable_data_ptr<int32_t>(), static_cast<size_t>(length)});
  return tokens_1L;
}

}  // namespace lra::analysis
