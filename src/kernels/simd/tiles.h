// Tiles of bfloat16: registers of sixteen rows of 64 bytes, which one instruction multiplies (AMX).
// The kernels on tiles are templates of one of two classes with the same members and the same
// results: HardwareTiles (tiles_amx.h) and EmulatedTiles, which runs on any processor for tests and
// to repeat a run of a processor that has tiles.
//
// An object makes tiles usable on its thread and releases them at its end; eight tiles, 0 to 7:
//   load<kTile>(from, stride)   sixteen rows of sixteen words of 32 bits, `stride` words apart
//   store<kTile>(to, stride)    likewise
//   clear<kTile>()              zeros
//   multiply_add<kC, kA, kB>()  c += a b: a has sixteen rows of 32 bfloat16 numbers along the sum;
//   row k
//                               of b holds numbers 2 k and 2 k + 1 of its sixteen columns, paired
//                               in words (kernels/gemm/pairs.h); c is 16 x 16 floats
//   narrow(x)                   sixteen floats as bfloat16, to nearest even
//   narrow_two(first, second)   both, and the words that pair them
//
// Order of a product's sums: for each number of c the products of even places along the sum are
// added to 0 one after the other, those of odd places likewise, each fused and rounded once; then
// even + odd, then c + that. Numbers below 2^-126, inputs and results, count as 0.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/flush_denormals.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileWords = 16;              // in a row
inline constexpr int64_t kTileDepth = 2 * kTileWords;  // bfloat16 numbers along the sum
inline constexpr int64_t kTileSize = kTileRows * kTileWords;

// Two vectors rounded to bfloat16; word n of `pairs` has number n of the first in its lower half.
struct NarrowTwo {
  HalfWords first, second;
  Words pairs;
};

class EmulatedTiles {
 public:
  EmulatedTiles() = default;
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;

  template <int kTile>
  void load(const float* from, int64_t stride) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      LRA_ISA::store(tiles_[kTile] + r * kTileWords, LRA_ISA::load(from + r * stride));
    }
  }
  template <int kTile>
  void store(float* to, int64_t stride) const {
    for (int64_t r = 0; r < kTileRows; ++r) {
      LRA_ISA::store(to + r * stride, LRA_ISA::load(tiles_[kTile] + r * kTileWords));
    }
  }
  template <int kTile>
  void clear() {
    for (float& word : tiles_[kTile]) word = 0;
  }
  template <int kC, int kA, int kB>
  void multiply_add() {
    for (int64_t m = 0; m < kTileRows; ++m) {
      add_row(tiles_[kA] + m * kTileWords, tiles_[kB], tiles_[kC] + m * kTileWords);
    }
  }

  static HalfWords narrow(Floats x) {
    const Lanes below = greater(broadcast(0x1p-126f), abs(x));
    return to_bf16(select(below, zeros(), x));
  }
  static NarrowTwo narrow_two(Floats first, Floats second) {
    const HalfWords a = narrow(first), b = narrow(second);
    return {a, b, add(widen(a), half_up(widen(b)))};
  }

 private:
  static void add_row(const float* a, const float* b, float* c) {
    const Words upper = broadcast(static_cast<int32_t>(0xFFFF0000));
    Floats even = zeros(), odd = zeros();
    for (int64_t k = 0; k < kTileWords; ++k) {
      const auto pair = std::bit_cast<uint32_t>(a[k]);
      const Words words = words_of(LRA_ISA::load(b + k * kTileWords));
      const Floats first = broadcast(std::bit_cast<float>(pair << 16));
      const Floats second = broadcast(std::bit_cast<float>(pair & 0xFFFF0000));
      even = LRA_ISA::multiply_add(first, floats_of(half_up(words)), even);
      odd = LRA_ISA::multiply_add(second, floats_of(bit_and(words, upper)), odd);
    }
    LRA_ISA::store(c, LRA_ISA::load(c) + (even + odd));
  }

  const FlushDenormals flush_;
  alignas(64) float tiles_[8][kTileSize];
};

}  // namespace lra::kernels::LRA_ISA
