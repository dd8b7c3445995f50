#include "kernels/attention/attention_tiles.h"

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
  if (visible.runs != nullptr) most = kSortedQueryTile;
  if (visible.left >= 0 && visible.right >= 0 && visible.left < kQueryTile &&
      visible.right < kQueryTile) {
    most = std::clamp<int64_t>(visible.left + visible.right, 24, kQueryTile);
  }
  const int64_t block = std::min(query_block_length(problem), problem.shape.query_length);
  const int64_t parts = (block + most - 1) / most;
  return round_up((block + parts - 1) / parts, 6);
}

// The rows that at least one of `queries` sees by its run.
KeyRange range_of_runs(const PlaneRuns& runs, KeyRange queries) {
  KeyRange range{runs.length, 0};
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    if (runs.begin()[i] >= runs.end()[i]) continue;
    range.begin = std::min<int64_t>(range.begin, runs.begin()[i]);
    range.end = std::max<int64_t>(range.end, runs.end()[i]);
  }
  return range;
}

void fill_run_lanes(const PlaneRuns& runs, const ScoreTile& tile, int64_t query, uint16_t* lanes) {
  const int64_t begin = runs.begin()[query] - tile.first_key();
  const int64_t end = runs.end()[query] - tile.first_key();
  for (int64_t v = 0; v < tile.vectors; ++v) {
    lanes[v] = static_cast<uint16_t>(tile.lanes[v] &
                                     lanes_of_range(begin - v * kTileLanes, end - v * kTileLanes));
  }
  const int64_t self = query - tile.first_key();
  if (end - begin > 1 && self >= 0 && self < tile.vectors * kTileLanes) {
    lanes[self / kTileLanes] &= static_cast<uint16_t>(~(1u << self % kTileLanes));
  }
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
  tile.rows_differ = problem.visible.runs != nullptr ||
                     window_of_query(problem, queries.end - 1).begin > keys.begin ||
                     window_of_query(problem, queries.begin).end < keys.end;
  tiles.push_back(tile);
}

}  // namespace

AttentionPlane plane_of(const AttentionProblem& problem, int64_t index) {
  AttentionPlane plane{index / problem.shape.heads, index % problem.shape.heads,
                       static_cast<uint32_t>(index)};
  if (problem.visible.runs != nullptr) plane.runs = problem.visible.runs->plane(index);
  return plane;
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

void collect_tiles(const AttentionProblem& problem, const AttentionPlane& plane, KeyRange queries,
                   KeyRange keys, const std::vector<uint16_t>& key_lanes, TileList& list) {
  list.tiles.clear();
  if (plane.runs.order != nullptr) {
    list.ranges.assign(1, range_of_runs(plane.runs, queries));
  } else {
    visible_key_ranges(problem, plane.index, queries, list.ranges);
  }
  for (const KeyRange& range : list.ranges) {
    const int64_t end = std::min(range.end, keys.end);
    for (int64_t begin = std::max(range.begin, keys.begin); begin < end;) {
      const int64_t cut = std::min(end, (begin / kKeyTile + 1) * kKeyTile);
      add_tile(problem, queries, {begin, cut}, key_lanes, list.tiles);
      begin = cut;
    }
  }
}

void fill_row_lanes(const AttentionProblem& problem, const AttentionPlane& plane,
                    const ScoreTile& tile, int64_t query, uint16_t* lanes) {
  if (plane.runs.order != nullptr) return fill_run_lanes(plane.runs, tile, query, lanes);
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
