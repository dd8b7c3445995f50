#include "kernels/feature_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/choice.h"

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
                                .mask = mask.empty() ? nullptr : mask.data(),
                                .out = out.data(),
                                .sums = sums.data()};
    feature_attention_forward(p);
    feature_attention_backward<T>({.forward = p, .grad = grad.data(), .grad_qkv = grad_qkv.data()});
  }

  Shape shape;
  FeatureMap map;
  std::vector<T> qkv, grad, out, grad_qkv;
  std::vector<uint8_t> mask;
  std::vector<W> sums;
};

// As norms: single gradients are differences of large numbers.
template <typename T>
double error(const std::vector<T>& got, const std::vector<double>& want) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

// Around blocks of 64 rows, runs of 512 and vectors of 16.
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

TEST(FeatureAttention, AgreesWithTheReferenceInDouble) {
  expect_agrees_with_double<float>(1e-6, 4e-6);
  expect_agrees_with_double<Bf16>(0x1p-8, 0x1p-7);
}

// Two keys, one of them masked: every query gets the other's value.
TEST(FeatureAttention, HasKnownValues) {
  Case<double> two({1, 2, 1, 2}, FeatureMap::kElu, false);
  two.mask = {0, 1};
  two.run();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(two.out[i], two.qkv[10 + i % 2], 1e-3);  // eps
  // Nothing goes to the masked key and value.
  for (int i = 2; i < 6; ++i) EXPECT_EQ(two.grad_qkv[i], 0);
}

TEST(FeatureAttention, LetsNaNThrough) {
  for (const FeatureMap map : {FeatureMap::kElu, FeatureMap::kRelu}) {
    Case<float> one({1, 70, 1, 16}, map, false);
    one.qkv[3 * 16 * 5] = std::numeric_limits<float>::quiet_NaN();  // a query
    one.run();
    EXPECT_TRUE(std::isnan(one.out[16 * 5]));
    EXPECT_TRUE(std::isnan(one.grad_qkv[3 * 16 * 5]));
  }
}

}  // namespace
}  // namespace lra::kernels
