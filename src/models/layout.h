// Layout of the tokens of a batch while a model computes: rows of similar length in one group, each
// group padded to its own longest row, so that little padding is computed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ops/libtorch.h"

namespace lra::models {

// Positions that hold tokens: all, if nothing is defined.
struct Padding {
  at::Tensor mask_BL = {};    // uint8, on the device of the model
  at::Tensor lengths_B = {};  // layers/context.h
};

// uint8 [B, longest] on `device`, 1 at the first lengths_B[b] positions of row b. `lengths_B`:
// int32, on the CPU.
at::Tensor mask_of_lengths(const at::Tensor& lengths_B, int64_t longest, at::Device device);

struct RowGroup {
  int64_t rows = 0, length = 0;  // length: of each row, padding and CLS included
  Padding padding = {};          // of these rows; undefined if none is padded
};

// A layout without groups leaves the rows of a batch as they came, [B, L, D]. With groups all of
// them are one row [1, T, D], T = sum of rows * length over the groups, so that anything that
// treats positions one by one runs once for all; `split` gives the groups to code that needs rows.
struct Layout {
  Padding padding = {};  // of the whole: mask [B, L] and lengths, or only mask [1, T]
  std::vector<RowGroup> groups = {};
  at::Tensor rows_B = {};    // int64: the row of the batch at each place, group by group
  at::Tensor places_B = {};  // int64: the place of each row of the batch

  // Views [rows, length, D] of a tensor in this layout, [1, T, D].
  std::vector<at::Tensor> split(const at::Tensor& x_1TD) const;
  // Places row * length + position of the batch, int64 [M], as rows of a tensor in this layout that
  // is flattened to [positions, D]; every row of the batch has `front` more positions in front.
  at::Tensor places_of(const at::Tensor& places_M, int64_t length, int64_t front) const;
  // f(rows [b, L, D], their description, number of the group) -> [b, L, D], joined again. Without
  // groups f gets x unchanged, as group 0.
  using GroupFunction = std::function<at::Tensor(const at::Tensor&, const RowGroup&, uint32_t)>;
  at::Tensor map(const at::Tensor& x, const GroupFunction& f) const;
};

// [b, L, D] of each group -> [1, T, D]
at::Tensor join(const std::vector<at::Tensor>& groups);

// The cost of one more group in the choice of a layout, in positions, since every sequence layer is
// called once more. Results with other numbers: docs/results/padding.md.
inline constexpr int64_t kGroupCost = 512;
// The same on a GPU in elements, positions times width: a call takes the host the same time at any
// width, and meanwhile the GPU could compute so many. Layers of quadratic cost take longer for an
// element, so they compute fewer. Results: docs/results/gpu/ledger.md.
inline constexpr int64_t kGroupCostOfGpu = int64_t{1} << 22, kQuadraticGroupCost = int64_t{1} << 20;
// The cost in positions for a model of this width.
inline int64_t group_cost_on(at::Device device, int64_t width, bool is_quadratic) {
  if (device.is_cpu()) return kGroupCost;
  return (is_quadratic ? kQuadraticGroupCost : kGroupCostOfGpu) / width;
}

// The number of `lengths`, which ascend, in each group, and the length that these are padded to:
// a multiple of 16, at most `longest`. Of all cuts, one with the least sum of rows * length +
// group_cost over the groups.
std::vector<RowGroup> cut_into_groups(std::span<const int64_t> lengths, int64_t longest,
                                      int64_t group_cost);

// The layout of rows with these numbers of valid positions, CLS included, in a batch that is
// `longest` positions long. `lengths_B`: int32, on the CPU. Without `group_cost`, or if one group
// is best, the rows stay as they are.
Layout layout_of(const at::Tensor& lengths_B, int64_t longest, std::optional<int64_t> group_cost,
                 at::Device device);

// Positions of this layout, padding included, without making it.
int64_t num_positions(const at::Tensor& lengths_B, int64_t longest,
                      std::optional<int64_t> group_cost);

}  // namespace lra::models
