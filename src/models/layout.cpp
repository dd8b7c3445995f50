#include "models/layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "layers/on_device.h"

namespace lra::models {
namespace {

constexpr int64_t kMultiple = 16;

std::vector<int64_t> numbers_of(const at::Tensor& lengths_B) {
  const at::Tensor lengths = lengths_B.contiguous();
  const auto* first = lengths.const_data_ptr<int32_t>();
  return {first, first + lengths.numel()};
}

// Rows of one length. They share a group: a cut between them only costs.
struct EqualRows {
  int64_t length = 0, end = 0;  // end: how many rows are this long or shorter
};

std::vector<EqualRows> equal_rows(std::span<const int64_t> lengths, int64_t longest) {
  std::vector<EqualRows> found;
  for (size_t row = 0; row < lengths.size(); ++row) {
    const int64_t rounded = (lengths[row] + kMultiple - 1) / kMultiple * kMultiple;
    const int64_t length = std::min(std::max(kMultiple, rounded), longest);
    if (found.empty() || found.back().length != length) found.push_back({length});
    found.back().end = static_cast<int64_t>(row) + 1;
  }
  return found;
}

int64_t positions_of(const std::vector<RowGroup>& groups) {
  return std::accumulate(
      groups.begin(), groups.end(), int64_t{0},
      [](int64_t sum, const RowGroup& group) { return sum + group.rows * group.length; });
}

// uint8 [1, T] on the CPU.
at::Tensor mask_of(std::span<const int64_t> lengths, const std::vector<RowGroup>& groups) {
  at::Tensor mask_1T = at::zeros({1, positions_of(groups)}, at::kByte);
  auto* to = mask_1T.mutable_data_ptr<uint8_t>();
  size_t row = 0;
  for (const RowGroup& group : groups) {
    for (int64_t i = 0; i < group.rows; ++i, to += group.length) {
      std::fill_n(to, lengths[row++], uint8_t{1});
    }
  }
  return mask_1T;
}

Layout ungrouped(const at::Tensor& lengths_B, int64_t longest, at::Device device) {
  if (lengths_B.min().item<int32_t>() == longest) return {};
  return {.padding = {mask_of_lengths(lengths_B, longest, device), lengths_B}};
}

}  // namespace

at::Tensor mask_of_lengths(const at::Tensor& lengths_B, int64_t longest, at::Device device) {
  const at::Tensor there_B = layers::on_device(lengths_B, device);
  const at::Tensor positions_L = at::arange(longest, there_B.options());
  return positions_L.unsqueeze(0).lt(there_B.unsqueeze(1)).to(at::kByte);
}

std::vector<at::Tensor> Layout::split(const at::Tensor& x_1TD) const {
  std::vector<int64_t> sizes;
  for (const RowGroup& group : groups) sizes.push_back(group.rows * group.length);
  // One split: its gradient is one copy, those of narrowed tensors would be padded ones.
  std::vector<at::Tensor> parts = x_1TD.split_with_sizes(sizes, 1);
  for (size_t g = 0; g < parts.size(); ++g) {
    parts[g] = parts[g].view({groups[g].rows, groups[g].length, x_1TD.size(2)});
  }
  return parts;
}

at::Tensor Layout::places_of(const at::Tensor& places_M, int64_t length, int64_t front) const {
  const at::Tensor rows_M = at::floor_divide(places_M, length),
                   positions_M = places_M.remainder(length) + front;
  if (groups.empty()) return rows_M * (length + front) + positions_M;
  std::vector<int64_t> begins;  // of the rows in the order of their places
  for (int64_t begin = 0; const RowGroup& group : groups) {
    for (int64_t i = 0; i < group.rows; ++i, begin += group.length) begins.push_back(begin);
  }
  const at::Tensor begins_B =
      layers::on_device(at::tensor(begins, at::kLong), places_B.device()).index_select(0, places_B);
  return begins_B.index_select(0, rows_M) + positions_M;
}

at::Tensor join(const std::vector<at::Tensor>& groups) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& group : groups) flat.push_back(group.flatten(0, 1).unsqueeze(0));
  return at::cat(flat, 1);
}

at::Tensor Layout::map(const at::Tensor& x, const GroupFunction& f) const {
  if (groups.empty()) return f(x, {x.size(0), x.size(1), padding}, 0);
  std::vector<at::Tensor> parts = split(x);
  for (size_t g = 0; g < parts.size(); ++g) {
    parts[g] = f(parts[g], groups[g], static_cast<uint32_t>(g));
  }
  return join(parts);
}

std::vector<RowGroup> cut_into_groups(std::span<const int64_t> lengths, int64_t longest,
                                      int64_t group_cost) {
  const std::vector<EqualRows> rows = equal_rows(lengths, longest);
  // The least cost of the rows up to each length, and where its last group begins.
  std::vector<int64_t> cost(rows.size() + 1), begin(rows.size() + 1);
  const auto before = [&](size_t i) { return i == 0 ? 0 : rows[i - 1].end; };
  for (size_t last = 1; last < cost.size(); ++last) {
    cost[last] = std::numeric_limits<int64_t>::max();
    for (size_t first = 0; first < last; ++first) {
      const int64_t positions = (before(last) - before(first)) * rows[last - 1].length;
      const int64_t with = cost[first] + positions + group_cost;
      if (with >= cost[last]) continue;
      cost[last] = with;
      begin[last] = static_cast<int64_t>(first);
    }
  }
  std::vector<RowGroup> groups;
  for (size_t last = rows.size(); last > 0;) {
    const auto first = static_cast<size_t>(begin[last]);
    groups.push_back({.rows = before(last) - before(first), .length = rows[last - 1].length});
    last = first;
  }
  std::ranges::reverse(groups);
  return groups;
}

Layout layout_of(const at::Tensor& lengths_B, int64_t longest, std::optional<int64_t> group_cost,
                 at::Device device) {
  if (!group_cost) return ungrouped(lengths_B, longest, device);
  const auto [sorted_B, rows_B] = lengths_B.sort(/*stable=*/std::optional(true), 0);
  const std::vector<int64_t> lengths = numbers_of(sorted_B);
  Layout layout{.groups = cut_into_groups(lengths, longest, *group_cost)};
  if (layout.groups.size() == 1) return ungrouped(lengths_B, longest, device);
  const at::Tensor both_2B = layers::on_device(at::stack({rows_B, rows_B.argsort()}), device);
  layout.rows_B = both_2B[0];
  layout.places_B = both_2B[1];
  layout.padding.mask_BL = layers::on_device(mask_of(lengths, layout.groups), device);
  int64_t position = 0, row = 0;
  for (RowGroup& group : layout.groups) {
    const int64_t positions = group.rows * group.length;
    if (lengths[static_cast<size_t>(row)] < group.length) {  // the shortest of them
      const at::Tensor mask_1T = layout.padding.mask_BL.narrow(1, position, positions);
      group.padding = {mask_1T.view({group.rows, group.length}),
                       sorted_B.narrow(0, row, group.rows)};
    }
    position += positions;
    row += group.rows;
  }
  return layout;
}

int64_t num_positions(const at::Tensor& lengths_B, int64_t longest,
                      std::optional<int64_t> group_cost) {
  if (!group_cost) return lengths_B.numel() * longest;
  const std::vector<RowGroup> groups =
      cut_into_groups(numbers_of(std::get<0>(lengths_B.sort())), longest, *group_cost);
  return groups.size() > 1 ? positions_of(groups) : lengths_B.numel() * longest;
}

}  // namespace lra::models
