#include "kernels/sorting/sorted_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

struct Made {
  int64_t planes = 1, length = 0, num_buckets = 0;
  RunRules rules;
  std::vector<int32_t> buckets = {};               // [rounds, planes, length]
  std::vector<std::vector<int32_t>> storage = {};  // per round
  int64_t num_rounds() const { return static_cast<int64_t>(storage.size()); }
  PlaneRuns runs(int64_t round, int64_t plane) const {
    return SortedRuns{storage[static_cast<size_t>(round)].data(), length, round}.plane(plane);
  }
  int32_t bucket(int64_t round, int64_t plane, int64_t row) const {
    return buckets[static_cast<size_t>((round * planes + plane) * length + row)];
  }
  // Place of a row in the order of a round.
  int64_t rank(int64_t round, int64_t plane, int64_t row) const {
    const int32_t* order = runs(round, plane).order;
    return std::find(order, order + length, row) - order;
  }
  bool sees(int64_t round, int64_t plane, int64_t i, int64_t j) const {
    return runs(round, plane).sees(rank(round, plane, i), rank(round, plane, j));
  }
};

void make(Made& m, int64_t rounds) {
  std::vector<int32_t*> pointers;
  for (int64_t r = 0; r < rounds; ++r) {
    m.storage.emplace_back(m.planes * (3 + 3 * r) * m.length, -7);
    pointers.push_back(m.storage.back().data());
  }
  make_sorted_runs(m.buckets.data(), m.planes, m.length, m.num_buckets, m.rules, rounds,
                   pointers.data());
}

Made random_runs(int64_t length, const RunRules& rules) {
  Made m{.planes = 3, .length = length, .num_buckets = 4, .rules = rules};
  RandomStream random(static_cast<uint64_t>(length));
  constexpr int64_t kRounds = 3;
  std::vector<int32_t> is_padding(m.planes * length);
  for (int32_t& padding : is_padding) padding = random.below(6) == 0;
  for (int64_t n = 0; n < kRounds * m.planes * length; ++n) {
    const auto bucket = static_cast<int32_t>(random.below(4));
    m.buckets.push_back(is_padding[n % (m.planes * length)] ? 4 : bucket);
  }
  make(m, kRounds);
  return m;
}

// True if row i may see the other row j in one round, by the words of the paper.
bool may_see(const Made& m, int64_t round, int64_t plane, int64_t i, int64_t j) {
  const int32_t bucket = m.bucket(round, plane, i);
  if (i == j || bucket == m.num_buckets || bucket != m.bucket(round, plane, j)) return false;
  if (m.rules.causal && j > i) return false;
  if (m.rules.chunk == 0) return true;
  // Rank: rows of lower buckets and earlier rows of the same bucket come first.
  const auto chunk_of = [&](int64_t row) {
    int64_t rank = 0;
    for (int64_t t = 0; t < m.length; ++t) {
      const int32_t other = m.bucket(round, plane, t), own = m.bucket(round, plane, row);
      rank += other < own || (other == own && t < row);
    }
    return rank / m.rules.chunk;
  };
  const int64_t back = chunk_of(i) - chunk_of(j);
  return back == 0 || back == 1;
}

TEST(SortedRuns, ShowEachPairOfTheRulesInItsFirstRoundAlone) {
  for (const int64_t length : {1, 2, 3, 8, 30}) {
    for (const RunRules& rules :
         {RunRules{}, {.chunk = 3}, {.chunk = 5, .causal = true}, {.chunk = 100}}) {
      const Made m = random_runs(length, rules);
      for (int64_t plane = 0; plane < m.planes; ++plane) {
        for (int64_t i = 0; i < length; ++i) {
          for (int64_t j = 0; j < length; ++j) {
            bool before = false;
            for (int64_t r = 0; r < m.num_rounds(); ++r) {
              const bool now = may_see(m, r, plane, i, j);
              EXPECT_EQ(m.sees(r, plane, i, j), now && !before)
                  << "L " << length << " round " << r << " pair " << i << " " << j;
              before = before || now;
            }
          }
        }
      }
    }
  }
}

TEST(SortedRuns, ShowALoneRowItselfOnceIfAsked) {
  // Row 1 is alone in both rounds, row 2 in the first only, row 4 is padding.
  Made m{.length = 5,
         .num_buckets = 4,
         .rules = {.chunk = 8},
         .buckets = {0, 1, 2, 0, 4, 3, 0, 2, 2, 4}};
  m.rules.lone_rows_see_themselves = true;
  make(m, 2);
  for (int64_t row = 0; row < 5; ++row) {
    EXPECT_FALSE(m.sees(0, 0, row, row)) << row;
    EXPECT_EQ(m.sees(1, 0, row, row), row == 1) << row;
  }
  m.storage.clear();
  m.rules.lone_rows_see_themselves = false;
  make(m, 2);
  EXPECT_FALSE(m.sees(1, 0, 1, 1));
}

TEST(SortedRuns, SortByBucketThenPosition) {
  Made m{.length = 6, .num_buckets = 3, .rules = {}, .buckets = {2, 0, 3, 2, 0, 1}};
  make(m, 1);
  const int32_t* order = m.runs(0, 0).order;
  EXPECT_EQ(std::vector<int32_t>(order, order + 6), (std::vector<int32_t>{1, 4, 5, 0, 3, 2}));
}

TEST(SortedRuns, RefuseBucketsOutOfRange) {
  for (const int32_t bad : {-1, 5}) {
    Made m{.length = 3, .num_buckets = 4, .rules = {}, .buckets = {0, bad, 1}};
    EXPECT_THROW(make(m, 1), CheckFailure);
  }
}

#if defined(__aarch64__)
constexpr auto hide_with(Isa) { return neon::hide_earlier_pairs; }
#else
constexpr auto hide_with(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::hide_earlier_pairs : avx2::hide_earlier_pairs;
}
#endif

using SortedRunsVectors = ImplementationTest;

TEST_P(SortedRunsVectors, HidesWhatEarlierRoundsShowed) {
  const Made m = random_runs(77, {.chunk = 30});
  const PlaneRuns runs = m.runs(2, 1);
  for (int64_t query = 0; query < 77; ++query) {
    std::vector<uint16_t> lanes(5, 0xFFFF);
    lanes[4] = (1 << 13) - 1;
    hide_with(GetParam())(runs, query, 0, 5, lanes.data());
    for (int64_t key = 0; key < 77; ++key) {
      bool seen = false;
      for (int64_t e = 0; e < 2; ++e) {
        const int32_t rank = runs.earlier_rank(e)[key];
        seen = seen || (rank >= runs.earlier_begin(e)[query] && rank < runs.earlier_end(e)[query]);
      }
      EXPECT_EQ((lanes[key / 16] >> key % 16 & 1) == 0, seen);
    }
    EXPECT_EQ(lanes[4] >> 13, 0);
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(SortedRunsVectors, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels
