// The groups of the task state.
#pragma once

#include <string_view>
#include <vector>

namespace lra::tasks {

// The products of a group: [a][b] is the number of a b, a first; 0 is the identity. Permutations
// are numbered in lexicographic order, and a b maps i to b[a[i]].
std::vector<std::vector<int32_t>> products_of(std::string_view group);

}  // namespace lra::tasks
