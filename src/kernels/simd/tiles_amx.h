// The tiles of tiles.h as registers (AMX_TILE, AMX_BF16; has_amx() in base/processor.h).
#pragma once

#include "kernels/simd/bf16_avx512.h"
#include "kernels/simd/tiles.h"

namespace lra::kernels::amx {

using namespace avx512;

// Palette 1 with eight full tiles.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
inline constexpr TileConfig kTileConfig;

// The compiler's own intrinsics take literal numbers of tiles, and g++ 12's loads do not say that
// they read memory, so that stores before them may be delayed past them.
class HardwareTiles {
 public:
  HardwareTiles() { asm volatile("ldtilecfg %0" : : "m"(kTileConfig)); }
  ~HardwareTiles() { asm volatile("tilerelease" : :); }
  HardwareTiles(const HardwareTiles&) = delete;
  HardwareTiles& operator=(const HardwareTiles&) = delete;

  template <int kTile>
  void load(const float* from, int64_t stride) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0"
                 :
                 : "i"(kTile), "r"(from), "r"(4 * stride)
                 : "memory");
  }
  template <int kTile>
  void store(float* to, int64_t stride) const {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)"
                 :
                 : "i"(kTile), "r"(to), "r"(4 * stride)
                 : "memory");
  }
  template <int kTile>
  void clear() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kC, int kA, int kB>
  void multiply_add() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
  }

  static HalfWords narrow(Floats x) { return avx512_bf16::narrow(x); }
  static avx512_bf16::NarrowTwo narrow_two(Floats first, Floats second) {
    return avx512_bf16::narrow_two(first, second);
  }

 private:
  const FlushDenormals flush_;  // vector code between products has the bits of EmulatedTiles
};

}  // namespace lra::kernels::amx
