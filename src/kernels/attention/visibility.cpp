#include "kernels/attention/visibility.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"

namespace lra::kernels {
namespace {

int64_t num_blocks(int64_t length, int64_t block) { return (length + block - 1) / block; }

void check_block_lists(const AttentionProblem& problem) {
  const BlockLists& blocks = *problem.visible.blocks;
  LRA_CHECK_GE(blocks.query_block, 1);
  LRA_CHECK_GE(blocks.key_block, 1);
  LRA_CHECK(blocks.offsets != nullptr);
  const int64_t heads = problem.shape.heads;
  LRA_CHECK(blocks.lists == 1 || blocks.lists == heads ||
            blocks.lists == problem.shape.batch * heads);
  const int64_t rows = blocks.lists * num_blocks(problem.shape.query_length, blocks.query_block);
  LRA_CHECK_EQ(blocks.offsets[0], 0);
  for (int64_t r = 0; r < rows; ++r) LRA_CHECK_LE(blocks.offsets[r], blocks.offsets[r + 1]);
  const int64_t num_key_blocks = num_blocks(problem.shape.key_length, blocks.key_block);
  for (int64_t n = 0; n < blocks.offsets[rows]; ++n) {
    LRA_CHECK_GE(blocks.key_blocks[n], 0);
    LRA_CHECK_LT(blocks.key_blocks[n], num_key_blocks);
  }
}

void check_runs(const AttentionProblem& problem) {
  const AttentionVisibility& visible = problem.visible;
  LRA_CHECK(visible.blocks == nullptr && visible.left == -1 && visible.right == -1);
  LRA_CHECK(visible.key_mask == nullptr && visible.query_mask == nullptr);
  LRA_CHECK_EQ(problem.shape.query_length, visible.runs->length);
  LRA_CHECK_EQ(problem.shape.key_length, visible.runs->length);
}

int64_t pairs_of_row(const PlaneRuns& runs, int64_t n) {
  int64_t count = 0;
  for (int64_t m = runs.begin()[n]; m < runs.end()[n]; ++m) count += runs.sees(n, m) ? 1 : 0;
  return count;
}

void sort_and_merge(std::vector<KeyRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const KeyRange& a, const KeyRange& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const KeyRange& range : ranges) {
    if (kept > 0 && ranges[kept - 1].end == range.begin) {
      ranges[kept - 1].end = range.end;
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace

void check_attention_rules(const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape;
  LRA_CHECK_GE(shape.batch, 1);
  LRA_CHECK_GE(shape.heads, 1);
  LRA_CHECK_GE(shape.query_length, 1);
  LRA_CHECK_GE(shape.key_length, 1);
  LRA_CHECK_GE(shape.head_dim, 1);
  LRA_CHECK_GE(problem.visible.left, -1);
  LRA_CHECK_GE(problem.visible.right, -1);
  LRA_CHECK_GE(problem.dropout_rate, 0.0);
  LRA_CHECK_LT(dropout_threshold(problem.dropout_rate), 65536u);
  if (problem.visible.blocks != nullptr) check_block_lists(problem);
  if (problem.visible.runs != nullptr) check_runs(problem);
}

void check_attention_problem(const AttentionProblem& problem) {
  check_attention_rules(problem);
  if (problem.visible.runs == nullptr) return;
  check_sorted_runs(*problem.visible.runs, problem.shape.batch * problem.shape.heads);
}

int64_t query_block_length(const AttentionProblem& problem) {
  const BlockLists* blocks = problem.visible.blocks;
  return blocks == nullptr ? problem.shape.query_length : blocks->query_block;
}

KeyRange window_of_query(const AttentionProblem& problem, int64_t query) {
  const int64_t length = problem.shape.key_length;
  const AttentionVisibility& visible = problem.visible;
  KeyRange window{0, length};
  if (visible.left >= 0) window.begin = std::max<int64_t>(0, query - visible.left);
  // Compared before it is added: `right` may be close to the largest integer.
  if (visible.right >= 0 && visible.right < length) {
    window.end = std::min(length, query + visible.right + 1);
  }
  return window;
}

void visible_key_ranges(const AttentionProblem& problem, int64_t plane, KeyRange queries,
                        std::vector<KeyRange>& ranges) {
  ranges.clear();
  const KeyRange window{window_of_query(problem, queries.begin).begin,
                        window_of_query(problem, queries.end - 1).end};
  const BlockLists* blocks = problem.visible.blocks;
  if (blocks == nullptr) {
    if (window.begin < window.end) ranges.push_back(window);
    return;
  }
  const int64_t list = plane % blocks->lists;
  const int64_t row = list * num_blocks(problem.shape.query_length, blocks->query_block) +
                      queries.begin / blocks->query_block;
  for (int64_t n = blocks->offsets[row]; n < blocks->offsets[row + 1]; ++n) {
    const int64_t first = blocks->key_blocks[n] * blocks->key_block;
    const KeyRange range{std::max(window.begin, first),
                         std::min(window.end, first + blocks->key_block)};
    if (range.begin < range.end) ranges.push_back(range);
  }
  sort_and_merge(ranges);
}

int64_t count_visible_pairs(const AttentionProblem& problem) {
  check_attention_problem(problem);
  const int64_t length = problem.shape.query_length;
  int64_t count = 0;
  std::vector<KeyRange> ranges;
  for (int64_t plane = 0; plane < problem.shape.batch * problem.shape.heads; ++plane) {
    for (int64_t i = 0; i < length; ++i) {
      if (problem.visible.runs != nullptr) {
        count += pairs_of_row(problem.visible.runs->plane(plane), i);
        continue;
      }
      visible_key_ranges(problem, plane, {i, i + 1}, ranges);
      for (const KeyRange& range : ranges) count += range.end - range.begin;
    }
  }
  return count;
}

}  // namespace lra::kernels
