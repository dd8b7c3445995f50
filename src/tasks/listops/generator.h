// Draws Long ListOps expressions from the distribution of the released script (Tay et al., 2021),
// or of a control that varies depth, arguments and distance apart.
//
// A node above max_depth (the root is at depth 1) is an operator with probability 1/4, else a
// digit; at max_depth always a digit. Operator: uniform over MIN, MAX, MED, SM; arguments: uniform
// over 2 .. max_args; digit: uniform. A tree is accepted if min_length < length < max_length, in
// tokens without parentheses. The released script draws from an unseeded generator and keeps the
// order of a Python set, so its data cannot be reproduced; here sample i of a split is a function
// of (seed, split, i), independent of the sizes and the number of threads, except that a sample
// equal to an earlier one of the dataset (order: train, val, test) is redrawn.
//
// With `spine`, every expression has max_depth - 1 operators, one inside the other: each but the
// innermost has one operator among its arguments, at a uniform place, and digits otherwise.
// `min_args` and `operators` restrict both kinds of trees.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lra {
class Progress;
}

namespace lra::tasks {

struct ListOpsSettings {
  int64_t min_length = 500;   // exclusive
  int64_t max_length = 2000;  // exclusive
  int64_t max_depth = 10;
  int64_t max_args = 10;  // 2 .. 2^20
  int64_t min_args = 2;
  bool spine = false;
  std::vector<uint8_t> operators = {1, 2, 3, 4};  // symbols, each as likely as any other
};

// Draws trees with `key` until one is accepted. Throws lra::Error after a million refused trees
// (the released settings refuse 92 %).
void draw_listops(const ListOpsSettings& settings, uint64_t key, std::vector<uint8_t>& symbols);

struct ListOpsExample {
  int split;  // 0 train, 1 val, 2 test
  std::vector<uint8_t> symbols;
  int label;
};

// Receives consecutive examples; the spans of all calls together are the three splits in order.
using ListOpsSink = std::function<void(std::span<const ListOpsExample>)>;

// Generates `sizes` examples per split. Returns one note for every duplicate that was drawn again.
// Throws lra::Error when the settings do not allow that many different expressions, or on a stop
// request.
std::vector<std::string> generate_listops(const ListOpsSettings& settings, uint64_t seed,
                                          const std::array<int64_t, 3>& sizes,
                                          const ListOpsSink& sink, Progress& progress);

}  // namespace lra::tasks
