#include "kernels/attention/attention_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lra::kernels {
namespace {

AttentionProblem dense(int64_t queries, int64_t keys) {
  AttentionProblem problem;
  problem.shape = {1, 1, queries, keys, 8};
  return problem;
}

std::vector<ScoreTile> tiles_of(const AttentionProblem& problem, KeyRange queries) {
  std::vector<uint16_t> lanes;
  fill_key_lanes(problem, 0, lanes);
  TileList list;
  collect_tiles(problem, plane_of(problem, 0), queries, {0, problem.shape.key_length}, lanes, list);
  return list.tiles;
}

TEST(AttentionTiles, CoverEveryQueryOnceWithinItsBlock) {
  const std::vector<int64_t> offsets(40, 0);
  for (const int64_t block : {1, 7, 50, 96, 100, 1000}) {
    const BlockLists lists{block, 16, 1, offsets.data(), nullptr};
    AttentionProblem problem = dense(301, 301);
    problem.visible.blocks = &lists;
    int64_t next = 0;
    for (const KeyRange& tile : query_tiles(problem)) {
      EXPECT_EQ(tile.begin, next);
      EXPECT_LE(tile.end - tile.begin, kQueryTile);
      EXPECT_EQ(tile.begin / block, (tile.end - 1) / block);
      next = tile.end;
    }
    EXPECT_EQ(next, 301);
  }
}

TEST(AttentionTiles, LeaveOutKeysAfterTheLastValidOne) {
  std::vector<uint8_t> mask(1000, 0);
  std::fill(mask.begin(), mask.begin() + 270, 1);
  AttentionProblem problem = dense(96, 1000);
  problem.visible.key_mask = mask.data();
  const auto tiles = tiles_of(problem, {0, 96});
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[0].vectors, 16);
  EXPECT_EQ(tiles[1].vectors, 1);  // keys 256 to 269
  EXPECT_EQ(tiles[1].lanes[0], (1 << 14) - 1);
}

TEST(AttentionTiles, LeaveOutKeysOutsideTheWindow) {
  AttentionProblem problem = dense(4096, 4096);
  problem.visible.left = 100;
  problem.visible.right = 0;
  const auto tiles = tiles_of(problem, {1000, 1040});
  ASSERT_EQ(tiles.size(), 2u);  // keys 900 to 1039, cut at 1024
  EXPECT_EQ(tiles[0].first_key(), 896);
  EXPECT_EQ(tiles[0].lanes[0], 0xFFF0);
  EXPECT_EQ(tiles[1].first_key(), 1024);
  EXPECT_EQ(tiles[1].vectors, 1);
  EXPECT_TRUE(tiles[0].rows_differ);
  uint16_t lanes[kTileVectors];
  fill_row_lanes(problem, plane_of(problem, 0), tiles[1], 1030, lanes);
  EXPECT_EQ(lanes[0], (1 << 7) - 1);
}

TEST(AttentionTiles, CausalTilesBelowTheDiagonalNeedNoRowLanes) {
  AttentionProblem problem = dense(4096, 4096);
  problem.visible.right = 0;
  const auto tiles = tiles_of(problem, {960, 1056});
  ASSERT_EQ(tiles.size(), 5u);
  for (int n = 0; n < 3; ++n) EXPECT_FALSE(tiles[n].rows_differ);
  EXPECT_TRUE(tiles[3].rows_differ);
  EXPECT_TRUE(tiles[4].rows_differ);
}

TEST(AttentionTiles, HoldTheRunsOfTheirQueriesAlone) {
  // Rows 0 to 99 see rows 40 to 59, the others none.
  std::vector<int32_t> data;
  for (int32_t n = 0; n < 300; ++n) data.push_back(n);
  for (const int32_t bound : {40, 60}) {
    for (int n = 0; n < 300; ++n) data.push_back(n < 100 ? bound : 0);
  }
  const SortedRuns runs{data.data(), 300, 0};
  AttentionProblem problem = dense(300, 300);
  problem.visible.runs = &runs;
  const auto tiles = tiles_of(problem, {48, 96});
  ASSERT_EQ(tiles.size(), 1u);
  EXPECT_EQ(tiles[0].first_key(), 32);
  EXPECT_EQ(tiles[0].vectors, 2);
  EXPECT_TRUE(tiles[0].rows_differ);
  uint16_t lanes[kTileVectors];
  fill_row_lanes(problem, plane_of(problem, 0), tiles[0], 50, lanes);
  EXPECT_EQ(lanes[0], 0xFF00);
  EXPECT_EQ(lanes[1], 0x0FFF & ~(1 << 2));  // row 50 itself is hidden
  EXPECT_TRUE(tiles_of(problem, {120, 144}).empty());
}

TEST(AttentionTiles, NeighbouringBlocksBecomeOneTile) {
  const std::vector<int64_t> offsets = {0, 3};
  const std::vector<int32_t> key_blocks = {3, 0, 2};
  const BlockLists lists{100, 50, 1, offsets.data(), key_blocks.data()};
  AttentionProblem problem = dense(100, 200);
  problem.visible.blocks = &lists;
  const auto tiles = tiles_of(problem, {0, 96});
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[0].vectors, 4);  // keys 0 to 49
  EXPECT_EQ(tiles[1].first_key(), 96);
  EXPECT_EQ(tiles[1].vectors, 7);  // keys 100 to 199
}

TEST(AttentionTiles, WholePlanesAreHandedOutOnlyWhenThreadsStayBusy) {
  EXPECT_TRUE(hand_out_whole_planes(16, 2, 1.0));
  EXPECT_TRUE(hand_out_whole_planes(1, 1, 1.0));
  EXPECT_FALSE(hand_out_whole_planes(1, 2, 1.4));
  EXPECT_FALSE(hand_out_whole_planes(3, 2, 1.0));
  EXPECT_TRUE(hand_out_whole_planes(3, 2, 1.4));
}

TEST(AttentionTiles, TrimMaskedQueriesAtBothEnds) {
  const std::vector<uint8_t> mask = {0, 0, 1, 0, 1, 0};
  AttentionProblem problem = dense(6, 6);
  problem.visible.query_mask = mask.data();
  const KeyRange range = trim_queries(problem, 0, {0, 6});
  EXPECT_EQ(range.begin, 2);
  EXPECT_EQ(range.end, 5);
  const KeyRange none = trim_queries(problem, 0, {0, 2});
  EXPECT_EQ(none.begin, none.end);
}

}  // namespace
}  // namespace lra::kernels
