#include "kernels/gemm/pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {
namespace {

std::vector<float> random_values(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = static_cast<float>(random.normal());
  return x;
}

// The two numbers of a word.
std::pair<float, float> halves(float word) {
  Bf16 pair[2];
  std::memcpy(pair, &word, sizeof(word));
  return {pair[0], pair[1]};
}

class Pairs : public testing::Test {
 protected:
  void SetUp() override {
    if (!isa_available(Isa::kAvx512Bf16)) GTEST_SKIP() << "this processor multiplies no bfloat16";
  }
};

TEST_F(Pairs, AreRoundedNeighboursOfARow) {
  auto row = random_values(48, 1);
  const auto before = row;
  avx512_bf16::narrow_row(row.data(), 48, row.data());
  for (size_t n = 0; n < 24; ++n) {
    EXPECT_EQ(halves(row[n]),
              std::pair(float{Bf16(before[2 * n])}, float{Bf16(before[2 * n + 1])}));
  }
}

TEST_F(Pairs, AreRoundedNumbersOfTwoRows) {
  auto first = random_values(32, 2);
  const auto before = first, second = random_values(32, 3);
  avx512_bf16::pair_rows(first.data(), second.data(), 32, first.data());
  std::vector<float> alone(32);
  avx512_bf16::pair_rows(before.data(), nullptr, 32, alone.data());
  for (size_t n = 0; n < 32; ++n) {
    EXPECT_EQ(halves(first[n]), std::pair(float{Bf16(before[n])}, float{Bf16(second[n])}));
    EXPECT_EQ(halves(alone[n]), std::pair(float{Bf16(before[n])}, 0.0f));
  }
}

TEST_F(Pairs, MultiplyWithFloatSums) {
  for (const auto& [rows, columns, words] :
       {std::tuple{1, 16, 1}, {7, 8, 3}, {13, 80, 33}, {6, 64, 128}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " x " << words);
    const int64_t padded = (columns + 15) / 16 * 16;
    auto a = random_values(rows * 2 * ((words + 7) / 8 * 8), 4);
    const auto even = random_values(words * padded, 5), odd = random_values(words * padded, 6);
    const auto a_wide = a;
    const int64_t a_row = 2 * ((words + 7) / 8 * 8);
    for (int64_t i = 0; i < rows; ++i) {
      avx512_bf16::narrow_row(a_wide.data() + i * a_row, a_row, a.data() + i * a_row);
    }
    std::vector<float> b(even.size()), c(rows * padded, 0.5f);
    for (int64_t d = 0; d < words; ++d) {
      avx512_bf16::pair_rows(even.data() + d * padded, odd.data() + d * padded, padded,
                             b.data() + d * padded);
    }
    avx512_bf16::gemm_pairs({rows, columns, words},
                            {a.data(), a_row, 1, b.data(), padded, kGemmVector, c.data(), padded},
                            true);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double exact = 0.5, size = 0.5;
        for (int64_t d = 0; d < words; ++d) {
          const float* pair = a_wide.data() + i * a_row + 2 * d;
          const double first = double{Bf16(pair[0])} * double{Bf16(even[d * padded + j])};
          const double second = double{Bf16(pair[1])} * double{Bf16(odd[d * padded + j])};
          exact += first + second;
          size += std::abs(first) + std::abs(second);
        }
        EXPECT_NEAR(c[i * padded + j], exact, 2 * (words + 1) * 0x1p-24 * size);
      }
    }
  }
}

}  // namespace
}  // namespace lra::kernels
