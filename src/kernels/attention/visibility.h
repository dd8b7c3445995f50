// Checks shared by all implementations of blocked attention: whether an AttentionProblem is well
// formed, and which keys a group of queries may see.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/attention.h"

namespace lra::kernels {

struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Fails a check when the problem breaks the contract of attention.h.
void check_attention_problem(const AttentionProblem& problem);
// The same without checking elements of sorted runs, which may be on a device.
void check_attention_rules(const AttentionProblem& problem);

// Queries per query block: L without block lists.
int64_t query_block_length(const AttentionProblem& problem);

// The keys that at least one of the queries [begin, end), all of one query block, may see by the
// block lists of plane b * H + h and the window: disjoint ranges in ascending order, neighbors
// merged. Masks are not looked at. `ranges` is overwritten; it is the caller's so that its memory
// is reused.
void visible_key_ranges(const AttentionProblem& problem, int64_t plane, KeyRange queries,
                        std::vector<KeyRange>& ranges);

// The keys that the window allows one query, within [0, S); empty ranges have end <= begin.
KeyRange window_of_query(const AttentionProblem& problem, int64_t query);

// The (query, key) pairs of all planes that the block lists and the window, or the runs, allow: the
// scores that attention is made of. Masks are not looked at.
int64_t count_visible_pairs(const AttentionProblem& problem);

}  // namespace lra::kernels
