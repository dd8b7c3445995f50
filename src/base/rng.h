// Philox 4x32-10: the one random number generator of the program.
//
// Counter-based (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011):
// a block of four words is a pure function of a 64-bit key and a 128-bit counter. So sample i of a
// split, a dropout mask and a weight are functions of (seed, what, i), whatever the number of
// threads.
#pragma once

#include <array>
#include <cstdint>

namespace lra {

using PhiloxBlock = std::array<uint32_t, 4>;

namespace philox {
inline constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
inline constexpr int kRounds = 10;
}  // namespace philox

// The published function; key word 0 is the low half of `key`.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < philox::kRounds; ++round) {
    const uint64_t p0 = uint64_t{philox::kMultiplier0} * counter[0];
    const uint64_t p1 = uint64_t{philox::kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += philox::kWeyl0;
    k1 += philox::kWeyl1;
  }
  return counter;
}

// Purpose of a stream of numbers. Part of the counter, so streams of one seed never overlap.
enum class RandomUse : uint32_t {
  kSample = 1,      // drawing a generated example
  kShuffle = 2,     // order of examples in an epoch
  kSplit = 3,       // held-out examples
  kWeights = 4,     // initial weights
  kDropout = 5,     // dropout keys
  kMixer = 6,       // random structure of a mixer (blocks, hashes, features)
  kAnalysis = 7,    // samples taken by an analysis
  kTokenOrder = 8,  // tokens of an example in another order
};

// A key for a sub-stream: a function of (seed, use, a, b, c) that is as good as random.
constexpr uint64_t derive_key(uint64_t seed, RandomUse use, uint32_t a = 0, uint32_t b = 0,
                              uint32_t c = 0) {
  const PhiloxBlock block = philox4x32({static_cast<uint32_t>(use), a, b, c}, seed);
  return uint64_t{block[1]} << 32 | block[0];
}

// A sequence of numbers for code that draws one after another.
class RandomStream {
 public:
  explicit constexpr RandomStream(uint64_t key, uint32_t high0 = 0, uint32_t high1 = 0)
      : key_(key), high0_(high0), high1_(high1) {}

  constexpr uint32_t next_u32() {
    if (position_ == 4) {
      block_ = philox4x32(
          {static_cast<uint32_t>(index_), static_cast<uint32_t>(index_ >> 32), high0_, high1_},
          key_);
      ++index_;
      position_ = 0;
    }
    return block_[position_++];
  }

  constexpr uint64_t next_u64() {
    const uint64_t low = next_u32();
    return uint64_t{next_u32()} << 32 | low;
  }

  // Uniform in [0, n), exactly (Lemire's multiply with rejection). n > 0.
  constexpr uint32_t below(uint32_t n) {
    uint64_t product = uint64_t{next_u32()} * n;
    if (static_cast<uint32_t>(product) < n) {
      const uint32_t threshold = (0u - n) % n;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next_u32()} * n;
    }
    return static_cast<uint32_t>(product >> 32);
  }

  // Uniform in [0, 1) with 53 random bits.
  constexpr double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

  // Standard normal (Box-Muller; the second value of a pair is kept).
  double normal();

 private:
  uint64_t key_;
  uint32_t high0_, high1_;
  uint64_t index_ = 0;
  PhiloxBlock block_{};
  int position_ = 4;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

// One keep-or-drop decision in 16 bits: drop when the 16-bit value is below `dropout_threshold`.
// The rate that results is exact to 2^-17; `dropout_scale` is the inverse of the true keep rate.
constexpr uint32_t dropout_threshold(double rate) {
  return static_cast<uint32_t>(rate * 65536.0 + 0.5);
}
constexpr float dropout_scale(double rate) {
  return static_cast<float>(65536.0 / (65536.0 - dropout_threshold(rate)));
}

// The 16-bit value that decides element `column` of row (row, plane): one Philox block with counter
// {column / 128 * 16 + column % 16, row, plane, 0} serves eight columns, and the sixteen counters
// of a group of 128 columns are neighbours: one vector register each. Word (column % 128) / 32, low
// half when column % 32 < 16.
constexpr uint32_t dropout_value(uint64_t key, uint32_t plane, uint32_t row, uint32_t column) {
  const PhiloxBlock block = philox4x32({column / 128 * 16 + column % 16, row, plane, 0}, key);
  const uint32_t word = block[column % 128 / 32];
  return column % 32 < 16 ? word & 0xFFFF : word >> 16;
}

}  // namespace lra
