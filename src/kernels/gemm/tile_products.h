// Products of matrices in whole tiles (simd/tiles.h): C = A B or C = C + A B, bfloat16 with float
// sums.
//
// Four tiles of C, two of A and two of B are all that there are: a step of depth 32 multiplies four
// times for four loads. Each number of C is one chain over the steps in ascending order, started
// from C (or 0), so its bits do not depend on how a product is cut into rows and columns.
#pragma once

#include <algorithm>

#include "kernels/simd/tiles.h"

namespace lra::kernels::LRA_ISA {

// In tiles: sixteen rows of C, sixteen columns, 32 numbers along the sum.
struct TileCounts {
  int64_t rows = 0, columns = 0, depth = 0;
};

// Distances are counted in words of 32 bits: a float or two bfloat16 numbers.
struct TileOperands {
  const float* a = nullptr;                   // row i of tile t and step d:
  int64_t a_row = 0, a_tile = 0, a_step = 0;  // a + i * a_row + t * a_tile + d * a_step
  const float* b = nullptr;                   // words 16 d + k of columns of tile t:
  int64_t b_word = 0, b_tile = 0;             // b + (16 d + k) * b_word + t * b_tile
  float* c = nullptr;                         // row i of tiles s and t:
  int64_t c_row = 0, c_down = 0, c_tile = 0;  // c + i * c_row + s * c_down + t * c_tile
};

// One or two tiles down and across; tiles 0 to 3 are left with C. A function of its own, whose
// distances stay in registers.
template <int kDown, int kAcross, typename Tiles>
[[gnu::noinline]] void multiply_tile_block(Tiles& tiles, int64_t depth, const TileOperands& o) {
  const float* a = o.a;
  const float* b = o.b;
  const int64_t a_row = o.a_row, a_tile = o.a_tile, a_step = o.a_step;
  const int64_t b_word = o.b_word, b_tile = o.b_tile;
  for (int64_t d = 0; d < depth; ++d, a += a_step, b += kTileWords * b_word) {
    tiles.template load<6>(b, b_word);
    tiles.template load<4>(a, a_row);
    tiles.template multiply_add<0, 4, 6>();
    if constexpr (kAcross == 2) {
      tiles.template load<7>(b + b_tile, b_word);
      tiles.template multiply_add<1, 4, 7>();
    }
    if constexpr (kDown == 2) {
      tiles.template load<5>(a + a_tile, a_row);
      tiles.template multiply_add<2, 5, 6>();
    }
    if constexpr (kDown == 2 && kAcross == 2) tiles.template multiply_add<3, 5, 7>();
  }
}

// Calls body(tile<kTile>, offset of its C) for the tiles of a block.
template <int kDown, int kAcross, typename Body>
void for_each_tile_of_block(const TileOperands& o, const Body& body) {
  body.template operator()<0>(o.c);
  if constexpr (kAcross == 2) body.template operator()<1>(o.c + o.c_tile);
  if constexpr (kDown == 2) body.template operator()<2>(o.c + o.c_down);
  if constexpr (kDown == 2 && kAcross == 2) body.template operator()<3>(o.c + o.c_down + o.c_tile);
}

template <int kDown, int kAcross, typename Tiles>
void multiply_in_place(Tiles& tiles, int64_t depth, const TileOperands& o, bool accumulate) {
  for_each_tile_of_block<kDown, kAcross>(o, [&]<int kTile>(float* c) {
    accumulate ? tiles.template load<kTile>(c, o.c_row) : tiles.template clear<kTile>();
  });
  multiply_tile_block<kDown, kAcross>(tiles, depth, o);
  for_each_tile_of_block<kDown, kAcross>(
      o, [&]<int kTile>(float* c) { tiles.template store<kTile>(c, o.c_row); });
}

// The product of one block alone, whose tiles are neighbors in rows of o.c_row.
template <int kDown, int kAcross, typename Tiles>
void multiply_block(Tiles& tiles, int64_t depth, const TileOperands& o) {
  TileOperands here = o;
  here.c_down = kTileRows * o.c_row;
  here.c_tile = kTileWords;
  multiply_in_place<kDown, kAcross>(tiles, depth, here, false);
}

// Calls body<kDown, kAcross>(operands of the block, its first tile of rows, of columns); blocks of
// the same columns follow each other, so that what they read of B stays in the first-level cache.
template <typename Body>
void for_each_tile_block(const TileCounts& counts, const TileOperands& operands, const Body& body) {
  TileOperands o = operands;
  for (int64_t j = 0; j < counts.columns; j += 2) {
    o.b = operands.b + j * o.b_tile;
    for (int64_t i = 0; i < counts.rows; i += 2) {
      o.a = operands.a + i * o.a_tile;
      o.c = operands.c + i * o.c_down + j * o.c_tile;
      const bool down = i + 1 < counts.rows, across = j + 1 < counts.columns;
      if (down && across) {
        body.template operator()<2, 2>(o, i, j);
      } else if (down) {
        body.template operator()<2, 1>(o, i, j);
      } else if (across) {
        body.template operator()<1, 2>(o, i, j);
      } else {
        body.template operator()<1, 1>(o, i, j);
      }
    }
  }
}

template <typename Tiles>
void multiply_tiles(Tiles& tiles, const TileCounts& counts, const TileOperands& operands,
                    bool accumulate) {
  for_each_tile_block(counts, operands,
                      [&]<int kDown, int kAcross>(const TileOperands& o, int64_t, int64_t) {
                        multiply_in_place<kDown, kAcross>(tiles, counts.depth, o, accumulate);
                      });
}

}  // namespace lra::kernels::LRA_ISA
