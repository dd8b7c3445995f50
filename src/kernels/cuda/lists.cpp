#include <algorithm>

#include "kernels/cuda/kernels.h"

namespace lra::kernels::cuda {

ListForm form_of(const BlockLists& blocks, int64_t query_length, int64_t key_length) {
  const int64_t rows = (query_length + blocks.query_block - 1) / blocks.query_block;
  const int64_t columns = (key_length + blocks.key_block - 1) / blocks.key_block;
  bool diagonal = blocks.lists == 1 && rows <= columns, stairs = blocks.lists == 1;
  for (int64_t row = 0; row < rows && (diagonal || stairs); ++row) {
    const int32_t* const list = blocks.key_blocks + blocks.offsets[row];
    const int64_t count = blocks.offsets[row + 1] - blocks.offsets[row];
    diagonal = diagonal && count == 1 && list[0] == row;
    stairs = stairs && count == std::min(row, columns);
    for (int64_t n = 0; n < count && stairs; ++n) stairs = list[n] == n;
  }
  return diagonal ? ListForm::kDiagonal : stairs ? ListForm::kStairs : ListForm::kListed;
}

TransposedLists transpose(const BlockLists& blocks, int64_t query_length, int64_t key_length) {
  const int64_t query_blocks = (query_length + blocks.query_block - 1) / blocks.query_block;
  const int64_t key_blocks = (key_length + blocks.key_block - 1) / blocks.key_block;
  TransposedLists of;
  of.offsets.assign(static_cast<size_t>(blocks.lists * key_blocks + 1), 0);
  const auto for_each_pair = [&](auto use) {
    for (int64_t row = 0; row < blocks.lists * query_blocks; ++row) {
      const int64_t list = row / query_blocks;
      for (int64_t n = blocks.offsets[row]; n < blocks.offsets[row + 1]; ++n) {
        use(static_cast<size_t>(list * key_blocks + blocks.key_blocks[n]), row % query_blocks);
      }
    }
  };
  for_each_pair([&](size_t row, int64_t) { ++of.offsets[row + 1]; });
  for (size_t n = 1; n < of.offsets.size(); ++n) of.offsets[n] += of.offsets[n - 1];
  of.query_blocks.resize(static_cast<size_t>(of.offsets.back()));
  std::vector<int64_t> next = of.offsets;
  for_each_pair([&](size_t row, int64_t query_block) {
    of.query_blocks[static_cast<size_t>(next[row]++)] = static_cast<int32_t>(query_block);
  });
  return of;
}

}  // namespace lra::kernels::cuda
