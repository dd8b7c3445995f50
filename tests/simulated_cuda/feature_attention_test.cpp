// Attention by feature maps on a simulated CUDA device against the double reference.
#include "kernels/feature_attention/feature_attention.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/cuda/kernels.h"

namespace lra::kernels {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  int64_t batch, length, heads, width;

  size_t inputs() const { return static_cast<size_t>(batch * length * heads * width); }
  size_t sums() const {
    return static_cast<size_t>(batch * heads * width * feature_sum_columns(width));
  }
};

// Output of the two passes.
template <typename T>
struct Results {
  explicit Results(const Shape& shape)
      : out(shape.inputs(), T(kNaN)),
        grad_qkv(3 * shape.inputs(), T(kNaN)),
        sums(shape.sums(), kNaN) {}

  std::vector<T> out, grad_qkv;
  std::vector<Wide<T>> sums;
};

struct Case {
  Case(const Shape& shape, FeatureMap map, bool masked) : shape(shape), map(map) {
    RandomStream random(static_cast<uint64_t>(shape.length * 100 + shape.width));
    // Values that all types hold exactly.
    const auto value = [&](double size) {
      return float{Bf16(static_cast<float>(size * random.normal()))};
    };
    for (size_t n = 0; n < 3 * shape.inputs(); ++n) qkv.push_back(value(2));
    for (size_t n = 0; n < shape.inputs(); ++n) grad.push_back(value(1));
    if (!masked) return;
    for (int64_t n = 0; n < shape.batch * shape.length; ++n) {
      mask.push_back(n < shape.length && random.uniform() < 0.7 ? 1 : 0);
    }
  }

  template <typename T>
  FeatureAttention<T> problem(const T* values) const {
    return {.batch = shape.batch,
            .length = shape.length,
            .heads = shape.heads,
            .width = shape.width,
            .map = map,
            .offset = map == FeatureMap::kRelu ? 1e-3 : 0,
            .eps = 1e-6,
            .qkv = values,
            .mask = mask.empty() ? nullptr : mask.data()};
  }

  // `ahead`: numbers before the first of the inputs, which then begin at an odd place.
  template <typename T>
  Results<T> on_device(size_t ahead = 0) const {
    const auto moved = [&](const std::vector<float>& x) {
      std::vector<T> to(ahead, T(kNaN));
      to.insert(to.end(), x.begin(), x.end());
      return to;
    };
    const std::vector<T> values = moved(qkv), grads = moved(grad);
    const auto p = problem(values.data() + ahead);
    Results<T> got(shape);
    std::vector<float> scratch(static_cast<size_t>(cuda::feature_attention_scratch(p)) + 1, kNaN);
    scratch.back() = 7;
    cuda::feature_attention_forward<T>({p, got.out.data(), got.sums.data()}, scratch.data(),
                                       nullptr);
    std::fill(scratch.begin(), scratch.end() - 1, kNaN);
    cuda::feature_attention_backward<T>(
        {p, got.out.data(), got.sums.data(), grads.data() + ahead, got.grad_qkv.data()},
        scratch.data(), nullptr);
    EXPECT_EQ(scratch.back(), 7) << "written behind the scratch";
    return got;
  }
  template <typename T>
  Results<T> on_cpu() const {
    const std::vector<T> values(qkv.begin(), qkv.end()), grads(grad.begin(), grad.end());
    const auto p = problem(values.data());
    Results<T> results(shape);
    feature_attention_forward<T>({p, results.out.data(), results.sums.data()});
    feature_attention_backward<T>(
        {p, results.out.data(), results.sums.data(), grads.data(), results.grad_qkv.data()});
    return results;
  }

  bool takes_part(size_t token) const { return mask.empty() || mask[token] != 0; }
  // One of the numbers of query 0, key 1 or value 2 of a token.
  size_t place(int64_t token, int64_t part, int64_t head, int64_t e) const {
    return static_cast<size_t>(((token * 3 + part) * shape.heads + head) * shape.width + e);
  }
  // NaN in all keys and values that take no part.
  void spoil_masked() {
    for (int64_t token = 0; token < shape.batch * shape.length; ++token) {
      if (takes_part(static_cast<size_t>(token))) continue;
      for (size_t n = place(token, 1, 0, 0); n < place(token + 1, 0, 0, 0); ++n) qkv[n] = kNaN;
    }
  }

  Shape shape;
  FeatureMap map;
  std::vector<float> qkv, grad;
  std::vector<uint8_t> mask;
};

// Normwise error: single gradients are differences of large numbers.
template <typename T>
double error(const std::vector<T>& got, const std::vector<double>& want) {
  double difference = 0, size = 0;
  for (size_t n = 0; n < want.size(); ++n) {
    difference += std::pow(static_cast<double>(got[n]) - want[n], 2);
    size += want[n] * want[n];
  }
  return std::sqrt(difference / size);
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}
template <typename T>
bool same_bits(const Results<T>& a, const Results<T>& b) {
  return same_bits(a.out, b.out) && same_bits(a.sums, b.sums) && same_bits(a.grad_qkv, b.grad_qkv);
}

// Sizes around tiles of 64 rows and runs of 512, for every width that is compiled.
constexpr Shape kShapes[] = {{1, 1, 1, 1},    {2, 37, 3, 5},    {2, 130, 2, 8},  {1, 515, 2, 16},
                             {2, 65, 3, 17},  {2, 1030, 1, 32}, {2, 515, 1, 64}, {2, 64, 2, 50},
                             {1, 37, 2, 100}, {1, 130, 1, 128}};

template <typename F>
void for_each_case(F f) {
  for (const FeatureMap map : {FeatureMap::kElu, FeatureMap::kRelu}) {
    for (const Shape& shape : kShapes) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << "L " << shape.length << " E " << shape.width << (masked ? " masked" : "")
                     << (map == FeatureMap::kElu ? " elu" : " relu"));
        f(Case(shape, map, masked && shape.length > 1));
      }
    }
  }
}

// The bounds of the CPU's kernels.
template <typename T>
constexpr double kValueBound = std::is_same_v<T, Bf16> ? 0x1p-8 : 5e-6;
template <typename T>
constexpr double kGradientBound = std::is_same_v<T, Bf16> ? 0x1p-7 : 5e-6;

template <typename T>
class SimulatedCudaFeatureAttention : public testing::Test {};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(SimulatedCudaFeatureAttention, Types);

TYPED_TEST(SimulatedCudaFeatureAttention, AgreesWithDouble) {
  using T = TypeParam;
  for_each_case([](Case c) {
    const Results<double> want = c.on_cpu<double>();
    c.spoil_masked();
    const Results<T> got = c.on_device<T>();
    EXPECT_LE(error(got.out, want.out), kValueBound<T>);
    EXPECT_LE(error(got.sums, want.sums), kValueBound<T>);
    EXPECT_LE(error(got.grad_qkv, want.grad_qkv), kGradientBound<T>);
    const int64_t columns = feature_sum_columns(c.shape.width);
    for (size_t n = 0; n < got.sums.size(); ++n) {
      if (static_cast<int64_t>(n) % columns > c.shape.width) {
        ASSERT_EQ(got.sums[n], 0) << n;
      }
    }
  });
}

TYPED_TEST(SimulatedCudaFeatureAttention, GivesZerosForWhatTakesNoPart) {
  using T = TypeParam;
  Case c({2, 70, 2, 20}, FeatureMap::kElu, true);  // no key of the second example takes part
  c.spoil_masked();
  const Results<T> got = c.on_device<T>();
  for (size_t n = c.shape.inputs() / 2; n < c.shape.inputs(); ++n) ASSERT_EQ(float(got.out[n]), 0);
  for (int64_t token = 0; token < 140; ++token) {
    if (c.takes_part(static_cast<size_t>(token))) continue;
    const size_t keys = c.place(token, 1, 0, 0), end = c.place(token + 1, 0, 0, 0);
    for (size_t n = keys; n < end; ++n) ASSERT_EQ(float(got.grad_qkv[n]), 0) << n;
  }
}

TYPED_TEST(SimulatedCudaFeatureAttention, HasTheSameBitsEachTimeAndWhereverArraysBegin) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{1, 600, 2, 32}, Shape{2, 70, 1, 128}, Shape{1, 70, 2, 6}}) {
    const Case c(shape, FeatureMap::kRelu, true);
    const Results<T> first = c.on_device<T>();
    EXPECT_TRUE(same_bits(first, c.on_device<T>()));
    EXPECT_TRUE(same_bits(first, c.on_device<T>(1)));
  }
}

TYPED_TEST(SimulatedCudaFeatureAttention, LetsNaNThrough) {
  using T = TypeParam;
  for (const FeatureMap map : {FeatureMap::kElu, FeatureMap::kRelu}) {
    for (const int64_t part : {0, 1, 2}) {
      Case c({1, 70, 1, 16}, map, false);
      c.qkv[c.place(5, part, 0, 3)] = kNaN;
      const Results<T> got = c.on_device<T>();
      EXPECT_TRUE(std::isnan(float(got.out[16 * 5 + 3]))) << "part " << part;
      EXPECT_TRUE(std::isnan(float(got.grad_qkv[3 * 16 * 5 + 3]))) << "part " << part;
    }
  }
}

// Values far from 0: the gradients of numerators and denominators nearly cancel, and what the CPU's
// kernels lose then is in the rounded output.
TEST(SimulatedCudaFeatureAttentionInBf16, LosesLittleMoreThanTheCpuWhereGradientsNearlyCancel) {
  Case c({1, 200, 1, 32}, FeatureMap::kElu, false);
  for (int64_t token = 0; token < 200; ++token) {
    for (int64_t e = 0; e < 32; ++e) {
      float& value = c.qkv[c.place(token, 2, 0, e)];
      value = Bf16(value + 16);
    }
  }
  const Results<double> want = c.on_cpu<double>();
  const Results<Bf16> got = c.on_device<Bf16>(), of_cpu = c.on_cpu<Bf16>();
  EXPECT_LE(error(got.out, want.out), kValueBound<Bf16>);
  for (const int64_t part : {0, 1, 2}) {
    const auto of_part = [&](const auto& x) {
      std::remove_cvref_t<decltype(x)> rows;
      for (int64_t token = 0; token < 200; ++token) {
        const auto begin = x.begin() + static_cast<int64_t>(c.place(token, part, 0, 0));
        rows.insert(rows.end(), begin, begin + 32);
      }
      return rows;
    };
    const auto all = of_part(want.grad_qkv);
    EXPECT_LE(error(of_part(got.grad_qkv), all), 1.5 * error(of_part(of_cpu.grad_qkv), all))
        << "part " << part;
  }
}

TEST(SimulatedCudaFeatureAttentionWidths, RefusesHeadsThatAreTooWide) {
  const Case c({1, 3, 1, 129}, FeatureMap::kElu, false);
  EXPECT_THROW(c.on_device<float>(), Error);
}

TEST(SimulatedCudaFeatureAttentionWidths, RefusesHeadsThatDoNotFit) {
  struct SmallerGpu {  // compute capability 8.6
    int before = std::exchange(simulated::most_shared_bytes, 99 << 10);
    ~SmallerGpu() { simulated::most_shared_bytes = before; }
  } gpu;
  EXPECT_NO_THROW(Case({1, 3, 1, 64}, FeatureMap::kElu, false).on_device<float>());
  EXPECT_NO_THROW(Case({1, 3, 1, 64}, FeatureMap::kElu, false).on_device<Bf16>());
  EXPECT_THROW(Case({1, 3, 1, 65}, FeatureMap::kElu, false).on_device<float>(), Error);
  EXPECT_THROW(Case({1, 3, 1, 65}, FeatureMap::kElu, false).on_device<Bf16>(), Error);
}

}  // namespace
}  // namespace lra::kernels
