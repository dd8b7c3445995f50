#include "kernels/attention_tiles.h"

#include <algorithm>

namespace lra::kernels {
namespace {

// Lanes [begin, end) of the sixteen; bounds outside [0, 16] are cut.
uint16_t lanes_of_range(int64_t begin, int64_t end) {
  const auto below = [](int64_t n) { return (1u << std::clamp<int64_t>(n, 0, kTileLanes)) - 1; };
  return static_cast<uint16_t>(below(end) & ~below(begin));
}

// Rows of a query tile: even parts of a block, a multiple of 6. A window narrower than the tile
// would have most of a full tile hidden, so tiles shrink with it.
int64_t tile_rows(const AttentionProblem& problem) {
  int64_t most = kQueryTile;
  const AttentionVisibility& visible = problem.visible;
  if (visible.left >= 0 && visible.right >= 0 && visible.left < kQueryTile &&
      visible.right < kQueryTile) {
    most = std::clamp<int64_t>(visible.left + visible.right, 24, kQueryTile);
  }
  const int64_t block = std::min(query_block_length(problem), problem.shape.query_length);
  const int64_t parts = (block + most - 1) / most;
  return round_up((block + parts - 1) / parts, 6);
}

void add_tile(const AttentionProblem& problem, KeyRange queries, KeyRange keys,
              const std::vector<uint16_t>& key_lanes, std::vector<ScoreTile>& tiles) {
  ScoreTile tile;
  tile.queries = queries;
  for (int64_t v = keys.begin / kTileLanes; v * kTileLanes < keys.end; ++v) {
    const int64_t first = v * kTileLanes;
    const auto lanes = static_cast<uint16_t>(lanes_of_range(keys.begin - first, keys.end - first) &
                                             key_lanes[static_cast<size_t>(v)]);
    if (lanes == 0 && tile.vectors == 0) continue;
    if (tile.vectors == 0) tile.first_vector = v;
    tile.lanes[tile.vectors++] = lanes;
  }
  while (tile.vectors > 0 && tile.lanes[tile.vectors - 1] == 0) --tile.vectors;
  if (tile.vectors == 0) return;
  tile.window_cuts = window_of_query(problem, queries.end - 1).begin > keys.begin ||
                     window_of_query(problem, queries.begin).end < keys.end;
  tiles.push_back(tile);
}

}  // namespace

AttentionPlane plane_of(const AttentionProblem& problem, int64_t index) {
  return {index / problem.shape.heads, index % problem.shape.heads, static_cast<uint32_t>(index)};
}

void fill_key_lanes(const AttentionProblem& problem, int64_t batch, std::vector<uint16_t>& lanes) {
  const int64_t length = problem.shape.key_length;
  lanes.assign(static_cast<size_t>(round_up(length, kTileLanes) / kTileLanes), 0);
  const uint8_t* mask = problem.visible.key_mask;
  if (mask != nullptr) mask += batch * length;
  for (int64_t j = 0; j < length; ++j) {
    const unsigned valid = mask == nullptr || mask[j] != 0;
    lanes[static_cast<size_t>(j / kTileLanes)] |= static_cast<uint16_t>(valid << j % kTileLanes);
  }
}

std::vector<KeyRange> query_tiles(const AttentionProblem& problem) {
  std::vector<KeyRange> tiles;
  const int64_t length = problem.shape.query_length;
  const int64_t block = std::min(query_block_length(problem), length);
  const int64_t rows = tile_rows(problem);
  for (int64_t first = 0; first < length; first += block) {
    const int64_t end = std::min(length, first + block);
    for (int64_t i = first; i < end; i += rows) tiles.push_back({i, std::min(end, i + rows)});
  }
  return tiles;
}

bool is_valid_query(const AttentionProblem& problem, int64_t batch, int64_t query) {
  const uint8_t* mask = problem.visible.query_mask;
  return mask == nullptr || mask[batch * problem.shape.query_length + query] != 0;
}

KeyRange trim_queries(const AttentionProblem& problem, int64_t batch, KeyRange queries) {
  while (queries.begin < queries.end && !is_valid_query(problem, batch, queries.begin)) {
    ++queries.begin;
  }
  while (queries.begin < queries.end && !is_valid_query(problem, batch, queries.end - 1)) {
    --queries.end;
  }
  return queries;
}

void collect_tiles(const AttentionProblem& problem, int64_t plane, KeyRange queries, KeyRange keys,
                   const std::vector<uint16_t>& key_lanes, TileList& list) {
  list.tiles.clear();
  visible_key_ranges(problem, plane, queries, list.ranges);
  for (const KeyRange& range : list.ranges) {
    const int64_t end = std::min(range.end, keys.end);
    for (int64_t begin = std::max(range.begin, keys.begin); begin < end;) {
      const int64_t cut = std::min(end, (begin / kKeyTile + 1) * kKeyTile);
      add_tile(problem, queries, {begin, cut}, key_lanes, list.tiles);
      begin = cut;
    }
  }
}

void fill_row_lanes(const AttentionProblem& problem, const ScoreTile& tile, int64_t query,
                    uint16_t* lanes) {
  const KeyRange window = window_of_query(problem, query);
  for (int64_t v = 0; v < tile.vectors; ++v) {
    const int64_t first = tile.first_key() + v * kTileLanes;
    lanes[v] = static_cast<uint16_t>(tile.lanes[v] &
                                     lanes_of_range(window.begin - first, window.end - first));
  }
}

bool hand_out_whole_planes(int64_t planes, int threads, double split_cost) {
  const int64_t rounds = (planes + threads - 1) / threads;
  return static_cast<double>(rounds * threads) <= static_cast<double>(planes) * split_cost * 1.05;
}

}  // namespace lra::kernels
