// Some examples of a split, the same in every run.
#pragma once

#include <cstdint>
#include <vector>

namespace lra {

// Description of the order of drawn_examples(), for people.
inline constexpr const char* kDrawnExamples =
    "drawn by a permutation that is the same in every run";

// Indices of `count` examples of a split of `split_size`, in the order of a keyed permutation; all
// of them if there are no more. Files are often sorted by label, so the first ones would not be
// representative.
std::vector<int64_t> drawn_examples(int64_t split_size, int64_t count);

// Holds a tenth of `count` training examples, rounded down, out for validation, by a permutation
// keyed by the seed: true at their places.
std::vector<bool> held_out_tenth(int64_t count, uint64_t seed);

}  // namespace lra
