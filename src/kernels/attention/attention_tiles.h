// Cuts an AttentionProblem into tiles of scores, and finds the lanes of a tile that are visible.
// Plain integer work, shared by the forward and the backward pass and free of instruction sets, so
// that containers are never compiled with one.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/visibility.h"

namespace lra::kernels {

inline constexpr int64_t kTileLanes = 16;
// Tiles of 96 x 256 scores (96 KiB) stay in the second-level cache together with their operands; 96
// is a multiple of the six rows of the widest block of gemm.h. Tiles of 48 or 192 queries and of
// 128 or 512 keys are within 5 % (lengths 1024 and 4096, E = 64).
inline constexpr int64_t kQueryTile = 96;
inline constexpr int64_t kKeyTile = 256;
// Sorted rows see short runs, so most of a large tile would be hidden: with runs of 32 (length
// 4096, E = 64) tiles of 96 queries take 30 % longer; with runs of 400 they take 10 % longer too.
inline constexpr int64_t kSortedQueryTile = 24;
inline constexpr int64_t kTileVectors = kKeyTile / kTileLanes;

constexpr int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// One (batch, head) pair.
struct AttentionPlane {
  int64_t batch = 0, head = 0;
  uint32_t index = 0;  // batch * H + head: the plane of dropout_value
  PlaneRuns runs = {};
};
AttentionPlane plane_of(const AttentionProblem& problem, int64_t index);

// Bit n of element v: key 16 v + n exists and is valid.
void fill_key_lanes(const AttentionProblem& problem, int64_t batch, std::vector<uint16_t>& lanes);

// Queries [0, L) cut so that no tile has more than kQueryTile rows or rows of two query blocks.
std::vector<KeyRange> query_tiles(const AttentionProblem& problem);

// The range without its masked queries at both ends; empty when none is valid.
KeyRange trim_queries(const AttentionProblem& problem, int64_t batch, KeyRange queries);

bool is_valid_query(const AttentionProblem& problem, int64_t batch, int64_t query);

// Some queries against up to kKeyTile keys, in whole vectors of 16.
struct ScoreTile {
  KeyRange queries;
  int64_t first_vector = 0;  // key / 16
  int64_t vectors = 0;
  bool rows_differ = false;        // queries of the tile differ in the keys they see
  uint16_t lanes[kTileVectors]{};  // visible to at least one query

  int64_t first_key() const { return first_vector * kTileLanes; }
};

// The memory that collect_tiles works in and fills, reused from call to call.
struct TileList {
  std::vector<KeyRange> ranges;
  std::vector<ScoreTile> tiles;
};

// The tiles of `queries` (a part of one query tile) with the keys of `keys` (multiples of kKeyTile,
// or S), ascending. Tiles without a visible key are left out, hidden vectors at their ends too.
void collect_tiles(const AttentionProblem& problem, const AttentionPlane& plane, KeyRange queries,
                   KeyRange keys, const std::vector<uint16_t>& key_lanes, TileList& list);

// The lanes of the tile that one query sees, for tiles with rows_differ; with runs, keys seen in
// earlier rounds are still included (hide_earlier_pairs removes them).
void fill_row_lanes(const AttentionProblem& problem, const AttentionPlane& plane,
                    const ScoreTile& tile, int64_t query, uint16_t* lanes);

// True if each plane should go whole to one thread. Otherwise threads share each plane, at
// `split_cost` times the work. Either way gives the same bits.
bool hand_out_whole_planes(int64_t planes, int threads, double split_cost);

}  // namespace lra::kernels
