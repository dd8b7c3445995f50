// Self-attention over the rows of each plane in a sorted order, where the keys of a row are one run
// of that order: Reformer (rows sorted by hash bucket, cut into chunks) and the strided pattern of
// the Sparse Transformer (rows sorted by their position modulo the stride).
//
// Rows sorted by bucket, and inside a bucket by position, make every rule about pairs a rule about
// runs: "same bucket, own chunk or the one before" is a run of ranks, "not a later position" is its
// end at the row itself. Only pairs shown by an earlier round are checked one by one, with a single
// comparison: whether the key's rank of that round is in the query's run of that round.
#pragma once

#include <cstdint>

#include "kernels/choice.h"

namespace lra::kernels {

// One plane's rows in one round. Row n of the round is row order[n] of the tensors; it sees row m
// of the round when all of these hold:
//   begin[n] <= m < end[n];
//   m != n, unless the run is row n alone;
//   in no earlier round e is begin_e[n] <= rank_e[m] < end_e[n], with rank_e, begin_e and end_e
//   what rows m and n had there.
struct PlaneRuns {
  const int32_t* order = nullptr;  // [L], a permutation; null: no runs
  int64_t length = 0;
  int64_t num_earlier = 0;

  constexpr const int32_t* begin() const { return order + length; }
  constexpr const int32_t* end() const { return order + 2 * length; }
  constexpr const int32_t* earlier_rank(int64_t e) const { return order + (3 + 3 * e) * length; }
  constexpr const int32_t* earlier_begin(int64_t e) const { return order + (4 + 3 * e) * length; }
  constexpr const int32_t* earlier_end(int64_t e) const { return order + (5 + 3 * e) * length; }

  constexpr int64_t row(int64_t n) const { return order == nullptr ? n : order[n]; }
  bool sees(int64_t n, int64_t m) const;
};

// All planes b * H + h of one round.
struct SortedRuns {
  const int32_t* data = nullptr;  // [B * H, 3 + 3 num_earlier, L], planes as in PlaneRuns
  int64_t length = 0;
  int64_t num_earlier = 0;

  constexpr PlaneRuns plane(int64_t index) const {
    return {data + index * (3 + 3 * num_earlier) * length, length, num_earlier};
  }
};

// Fails a check when an order or a run leaves [0, L). That an order is a permutation is not
// checked.
void check_sorted_runs(const SortedRuns& runs, int64_t planes);

// Rules that make runs from buckets.
struct RunRules {
  int64_t chunk = 0;    // a row sees its own chunk of the order and the one before; 0: no chunks
  bool causal = false;  // and no later position
  // True if a row that sees no other row in any round sees itself, in the last round.
  bool lone_rows_see_themselves = false;
};

// Makes rounds of runs from the buckets [rounds, planes, length] of all rows: each round sorts by
// bucket, equal ones by position; a row sees the rows of its own bucket, under `rules`. Rows of
// bucket num_buckets, the padding, come last and neither see nor are seen. rounds[r] points to the
// [planes, 3 + 3 r, L] of round r, overwritten. Buckets outside [0, num_buckets] fail a check.
void make_sorted_runs(const int32_t* buckets, int64_t planes, int64_t length, int64_t num_buckets,
                      const RunRules& rules, int64_t num_rounds, int32_t* const* rounds);

// Removes from lanes (bit n of lanes[v] is row first_key + 16 v + n) the rows that `query` has seen
// in an earlier round.
LRA_DECLARE_SIMD(void hide_earlier_pairs(const PlaneRuns& runs, int64_t query, int64_t first_key,
                                         int64_t vectors, uint16_t* lanes);)

}  // namespace lra::kernels
