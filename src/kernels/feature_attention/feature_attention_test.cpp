#include "kernels/feature_attention/feature_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

struct Shape {
  int64_t batch, length, heads, width;
};

// One problem with its gradient, in arrays of type T.
template <typename T>
struct Case {
  using W = Wide<T>;

  Case(const Shape& shape, FeatureMap map, bool masked) : shape(shape), map(map) {
    RandomStream random(static_cast<uint64_t>(shape.length * 100 + shape.width));
    const int64_t count = shape.batch * shape.length * shape.heads * shape.width;
    for (int64_t i = 0; i < 3 * count; ++i) qkv.push_back(static_cast<float>(2 * random.normal()));
    for (int64_t i = 0; i < count; ++i) grad.push_back(static_cast<float>(random.normal()));
    if (masked) {
      for (int64_t j = 0; j < shape.batch * shape.length; ++j) {
        mask.push_back(random.uniform() < 0.7 ? 1 : 0);
      }
    }
  }
  // The same numbers in double.
  template <typename U>
  explicit Case(const Case<U>& other)
      : shape(other.shape),
        map(other.map),
        qkv(other.qkv.begin(), other.qkv.end()),
        grad(other.grad.begin(), other.grad.end()),
        mask(other.mask) {}

  void run() {
    out.resize(grad.size());
    grad_qkv.assign(qkv.size(), T(7));
    sums.resize(static_cast<size_t>(shape.batch * shape.heads * shape.width *
                                    feature_sum_columns(shape.width)));
    const FeatureAttention<T> p{.batch = shape.batch,
                                .length = shape.length,
                                .heads = shape.heads,
                                .width = shape.width,
                                .map = map,
                                .offset = map == FeatureMap::kRelu ? 1e-3 : 0,
                                .eps = 1e-6,
                                .qkv = qkv.data(),
                                .mask = mask.empty() ? nullptr : mask.data()};
    feature_attention_forward<T>({p, out.data(), sums.data()});
    feature_attention_backward<T>({p, out.data(), sums.data(), grad.data(), grad_qkv.data()});
  }

  // One of the numbers of query 0, key 1 or value 2 of a token.
  T& at(int64_t token, int64_t part, int64_t head, int64_t e) {
    return qkv[((token * 3 + part) * shape.heads + head) * shape.width + e];
  }

  Shape shape;
  FeatureMap map;
  std::vector<T> qkv, grad, out, grad_qkv;
  std::vector<uint8_t> mask;
  std::vector<W> sums;
};

// Normwise error: single gradients are differences of large numbers.
template <typename T>
double error(const std::vector<T>& got, const std::vector<double>& want) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

// Sizes around blocks of 64 rows, runs of 512 and vectors of 16.
constexpr Shape kShapes[] = {{1, 1, 1, 1},   {2, 7, 3, 5},    {1, 63, 2, 15}, {1, 64, 1, 16},
                             {3, 65, 2, 17}, {1, 512, 2, 32}, {2, 513, 1, 8}, {1, 1100, 2, 64}};

template <typename T>
void expect_agrees_with_double(double value, double gradient) {
  for (const FeatureMap map : {FeatureMap::kElu, FeatureMap::kRelu}) {
    for (const Shape& shape : kShapes) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << "L " << shape.length << " E " << shape.width << (masked ? " masked" : "")
                     << (map == FeatureMap::kElu ? " elu" : " relu"));
        Case<T> got(shape, map, masked && shape.length > 1);
        Case<double> want(got);
        got.run();
        want.run();
        EXPECT_LE(error(got.out, want.out), value);
        EXPECT_LE(error(got.grad_qkv, want.grad_qkv), gradient);
      }
    }
  }
}

using FeatureAttentionTest = ImplementationTest;

TEST_P(FeatureAttentionTest, AgreesWithDouble) {
  // Outputs are means of numbers of both signs: what is left after 1,100 terms canceled.
  expect_agrees_with_double<float>(5e-6, 5e-6);
  expect_agrees_with_double<Bf16>(0x1p-8, 0x1p-7);
}

// With one key and a value of width 1, the second number of Z is the key's feature.
TEST_P(FeatureAttentionTest, FeaturesKeepTheirErrorBound) {
  constexpr int64_t kCount = 2000;
  for (const FeatureMap map : {FeatureMap::kElu, FeatureMap::kRelu}) {
    Case<float> keys({1, 1, kCount, 1}, map, false);
    for (int64_t h = 0; h < kCount; ++h) keys.at(0, 1, h, 0) *= 5;
    keys.at(0, 1, 7, 0) = -3e38f;
    keys.at(0, 1, 8, 0) = 0;
    keys.run();
    for (int64_t h = 0; h < kCount; ++h) {
      const double x = keys.at(0, 1, h, 0), size = std::max(1.0, std::abs(x));
      const double elu = x > 0 ? x + 1 : std::exp(x), relu = std::max(x, 0.0) + 1e-3;
      const double want = map == FeatureMap::kElu ? elu : relu;
      EXPECT_NEAR(keys.sums[h * 16 + 1], want, 2e-7 * size * want + 1e-38) << x;
    }
  }
}

// Queries of 0 have features of 1; those of keys 1 and -1 are 2 and 1/e.
TEST_P(FeatureAttentionTest, HasKnownValues) {
  Case<float> two({1, 2, 1, 1}, FeatureMap::kElu, false);
  two.qkv = {0, 1, 3, 0, -1, 5};
  two.run();
  const double other = std::exp(-1.0), want = (2 * 3 + other * 5) / (2 + other);
  EXPECT_NEAR(two.out[0], want, 1e-5);
  EXPECT_NEAR(two.out[1], want, 1e-5);
}

TEST_P(FeatureAttentionTest, NeverUsesMaskedKeysAndValues) {
  for (const FeatureMap map : {FeatureMap::kElu, FeatureMap::kRelu}) {
    Case<float> clean({2, 90, 2, 17}, map, true), dirty = clean;
    for (int64_t token = 0; token < 2 * 90; ++token) {
      if (dirty.mask[static_cast<size_t>(token)] != 0) continue;
      for (int64_t part : {1, 2}) {
        for (int64_t e = 0; e < 17; ++e) {
          dirty.at(token, part, token % 2, e) = std::numeric_limits<float>::quiet_NaN();
        }
      }
    }
    clean.run();
    dirty.run();
    EXPECT_EQ(dirty.out, clean.out);
    EXPECT_EQ(dirty.grad_qkv, clean.grad_qkv);
  }
}

TEST_P(FeatureAttentionTest, LetsNaNThrough) {
  for (const FeatureMap map : {FeatureMap::kElu, FeatureMap::kRelu}) {
    for (const int64_t part : {0, 1, 2}) {
      Case<float> one({1, 70, 1, 16}, map, false);
      one.at(5, part, 0, 3) = std::numeric_limits<float>::quiet_NaN();
      one.run();
      EXPECT_TRUE(std::isnan(one.out[16 * 5 + 3])) << "part " << part;
      EXPECT_TRUE(std::isnan(one.grad_qkv[3 * 16 * 5 + 3])) << "part " << part;
    }
  }
}

std::vector<float> floats(const std::vector<Bf16>& x) { return {x.begin(), x.end()}; }

TEST(FeatureAttentionOnTiles, EmulationHasTheBitsOfTheProcessor) {
  if (const std::string why = why_untested(Isa::kAmx); !why.empty()) GTEST_SKIP() << why;
  for (const Shape& shape : kShapes) {
    Case<Bf16> real(shape, FeatureMap::kElu, shape.length > 1), emulated = real;
    for (auto* c : {&real, &emulated}) {
      const KernelsVariable forced(c == &real ? "amx" : "amx_emulated");
      c->run();
    }
    EXPECT_EQ(emulated.sums, real.sums);
    EXPECT_EQ(floats(emulated.out), floats(real.out));
    EXPECT_EQ(floats(emulated.grad_qkv), floats(real.grad_qkv));
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(FeatureAttentionTest, Isa::kRef, LRA_VECTOR_ISAS, Isa::kAmx,
                                Isa::kAmxEmulated);

}  // namespace
}  // namespace lra::kernels
