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

// Two numbers, rounded, in one word.
float word_of(float first, float second) {
  const Bf16 pair[2] = {first, second};
  float word;
  std::memcpy(&word, pair, sizeof(word));
  return word;
}

class Pairs : public testing::Test {
 protected:
  void SetUp() override {
    if (!isa_available(Isa::kAvx512Bf16)) GTEST_SKIP() << "this processor multiplies no bfloat16";
  }
};

TEST_F(Pairs, MultiplyWithFloatSums) {
  for (const auto& [rows, columns, words] :
       {std::tuple{1, 16, 1}, {7, 8, 3}, {13, 80, 33}, {6, 64, 128}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << " x " << words);
    const int64_t padded = (columns + 15) / 16 * 16;
    const auto a_wide = random_values(rows * 2 * words, 4);
    const auto even = random_values(words * padded, 5), odd = random_values(words * padded, 6);
    std::vector<float> a, b, c(rows * padded, 0.5f);
    for (size_t n = 0; n < a_wide.size(); n += 2) a.push_back(word_of(a_wide[n], a_wide[n + 1]));
    for (size_t n = 0; n < even.size(); ++n) b.push_back(word_of(even[n], odd[n]));
    avx512_bf16::gemm_pairs({rows, columns, words},
                            {a.data(), words, 1, b.data(), padded, kGemmVector, c.data(), padded},
                            true);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double exact = 0.5, size = 0.5;
        for (int64_t d = 0; d < words; ++d) {
          const float* pair = a_wide.data() + 2 * (i * words + d);
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
