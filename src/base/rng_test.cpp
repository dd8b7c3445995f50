#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace lra {
namespace {

struct KnownAnswer {
  PhiloxBlock counter;
  uint64_t key;
  PhiloxBlock result;
};

// "philox4x32 10" in the file kat_vectors of Random123.
constexpr KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     0xffffffffffffffff,
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     0x299f31d0a4093822,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, GivesThePublishedAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    EXPECT_EQ(philox4x32(known.counter, known.key), known.result);
  }
}

TEST(RandomStream, IsPhiloxOfACountingCounter) {
  RandomStream stream(42, 7, 8);
  for (uint32_t block = 0; block < 3; ++block) {
    const PhiloxBlock expected = philox4x32({block, 0, 7, 8}, 42);
    for (const uint32_t word : expected) EXPECT_EQ(stream.next_u32(), word);
  }
}

TEST(RandomStream, DrawsBelowEveryBoundWithoutBias) {
  for (const uint32_t n : {1u, 2u, 3u, 10u, 97u}) {
    RandomStream stream(n);
    std::vector<int> counts(n);
    const int draws = 20000;
    for (int i = 0; i < draws; ++i) ++counts.at(stream.below(n));
    const double mean = static_cast<double>(draws) / n;
    double chi_square = 0;
    for (const int count : counts) chi_square += (count - mean) * (count - mean) / mean;
    // Five standard deviations of the chi-square distribution.
    EXPECT_LE(chi_square, n - 1 + 5 * std::sqrt(2.0 * n)) << n;
  }
}

TEST(RandomStream, RejectsWhatWouldBiasALargeBound) {
  // Without rejection a multiply by 3 * 2^30 hits every third value twice as often.
  constexpr uint32_t kBound = 3u << 30;
  RandomStream stream(1);
  std::vector<int> thirds(3);
  for (int i = 0; i < 30000; ++i) {
    const uint32_t value = stream.below(kBound);
    ASSERT_LT(value, kBound);
    ++thirds[value % 3];
  }
  for (const int count : thirds) EXPECT_NEAR(count, 10000, 5 * std::sqrt(10000 * 2.0 / 3));
}

TEST(RandomStream, UniformFillsTheUnitInterval) {
  RandomStream stream(5);
  double sum = 0, least = 1, most = 0;
  for (int i = 0; i < 20000; ++i) {
    const double value = stream.uniform();
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
  EXPECT_LT(least, 1e-3);
  EXPECT_GT(most, 1 - 1e-3);
  EXPECT_NEAR(sum / 20000, 0.5, 5 * std::sqrt(1.0 / 12 / 20000));
}

TEST(RandomStream, NormalHasTheMomentsOfANormal) {
  RandomStream stream(6);
  const int draws = 40000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = stream.normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / draws, 0, 5 / std::sqrt(draws));
  EXPECT_NEAR(squares / draws, 1, 5 * std::sqrt(2.0 / draws));
  EXPECT_NEAR(fourth / draws, 3, 5 * std::sqrt(96.0 / draws));
}

TEST(DeriveKey, DependsOnEveryArgument) {
  const std::set<uint64_t> keys = {
      derive_key(1, RandomUse::kSample),       derive_key(2, RandomUse::kSample),
      derive_key(1, RandomUse::kShuffle),      derive_key(1, RandomUse::kSample, 1),
      derive_key(1, RandomUse::kSample, 0, 1), derive_key(1, RandomUse::kSample, 0, 0, 1)};
  EXPECT_EQ(keys.size(), 6u);
}

TEST(Dropout, ThresholdAndScaleMatchTheRate) {
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 32768u);
  EXPECT_EQ(dropout_threshold(0.1), 6554u);
  EXPECT_FLOAT_EQ(dropout_scale(0.5), 2);
  EXPECT_FLOAT_EQ(dropout_scale(0.1), 65536.0f / (65536 - 6554));
}

TEST(Dropout, UsesEachHalfWordOfABlockOnce) {
  // One group of 128 columns takes sixteen blocks of eight values.
  std::multiset<uint32_t> expected, got;
  for (uint32_t counter = 0; counter < 16; ++counter) {
    for (const uint32_t word : philox4x32({16 + counter, 9, 3, 0}, 77)) {
      expected.insert(word & 0xFFFF);
      expected.insert(word >> 16);
    }
  }
  for (uint32_t column = 128; column < 256; ++column) {
    got.insert(dropout_value(77, 3, 9, column));
  }
  EXPECT_EQ(got, expected);
}

TEST(Dropout, DropsAtTheRate) {
  const uint32_t threshold = dropout_threshold(0.1);
  int dropped = 0;
  const uint32_t rows = 100, columns = 512;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < columns; ++column) {
      dropped += dropout_value(1, 0, row, column) < threshold;
    }
  }
  const double total = double{rows} * columns;
  EXPECT_NEAR(dropped, 0.1 * total, 5 * std::sqrt(0.09 * total));
}

}  // namespace
}  // namespace lra
