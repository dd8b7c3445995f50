// The simple kernels on a simulated CUDA device against the CPU's references.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/cuda/kernels.h"

namespace lra::kernels {
namespace {

template <typename T>
std::vector<T> random_values(int64_t count, uint64_t seed, double size = 1) {
  RandomStream random(seed);
  std::vector<T> x(static_cast<size_t>(count));
  // Values that all types hold exactly.
  for (T& value : x)
    value = static_cast<T>(float{Bf16(static_cast<float>(size * random.normal()))});
  return x;
}

template <typename T>
std::vector<T> unwritten(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count), T(std::numeric_limits<float>::quiet_NaN()));
}

template <typename T, typename U>
void expect_near(const std::vector<T>& got, const std::vector<U>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t n = 0; n < got.size(); ++n) {
    const double a = got[n], b = want[n];
    ASSERT_LE(std::abs(a - b), bound * std::max(1.0, std::abs(b))) << "element " << n;
  }
}

template <typename T>
class SimulatedCuda : public testing::Test {
 protected:
  // Bound for a result of order one, and for one rounding of it.
  static constexpr double kBound = std::is_same_v<T, Bf16> ? 0x1p-8 : 4e-6;
};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(SimulatedCuda, Types);

// An array that begins `shift` elements behind an aligned place.
template <typename T>
struct Shifted {
  std::vector<T> values;
  int64_t shift;

  Shifted(std::vector<T> given, int64_t by) : values(std::move(given)), shift(by) {
    values.insert(values.begin(), static_cast<size_t>(shift), T(0));
  }
  T* data() { return values.data() + shift; }
  std::vector<T> copy() const { return {values.begin() + shift, values.end()}; }
};

TYPED_TEST(SimulatedCuda, PointwiseMatchesTheReference) {
  using T = TypeParam;
  for (const int64_t count : {0, 1, 15, 16, 127, 128, 129, 1023, 1024, 1025, 5000}) {
    for (const int64_t shift : {0, 1}) {
      for (const Dropout& dropout : {Dropout{}, Dropout{0.3, 99}, Dropout{0.1, 7, 3}}) {
        SCOPED_TRACE(count);
        SCOPED_TRACE(shift);
        Shifted<T> x(random_values<T>(count, 1, 3), shift), dy(random_values<T>(count, 2), shift);
        const auto plain_x = x.copy(), plain_dy = dy.copy();
        const std::vector<double> wide_x(plain_x.begin(), plain_x.end()),
            wide_dy(plain_dy.begin(), plain_dy.end());
        const auto size = static_cast<size_t>(count);
        std::vector<double> want(size), want_dx(size);
        const auto fresh = [&] { return Shifted<T>(unwritten<T>(count), shift); };
        auto got = fresh(), got_dx = fresh();
        ref::gelu_dropout(count, wide_x.data(), want.data(), dropout);
        cuda::gelu_dropout(count, x.data(), got.data(), dropout, nullptr);
        expect_near(got.copy(), want, this->kBound);
        const auto forward = got.copy();
        got = fresh();
        ref::gelu_dropout_backward(count, wide_x.data(), wide_dy.data(), want_dx.data(),
                                   want.data(), dropout);
        cuda::gelu_dropout_backward(count, x.data(), dy.data(), got_dx.data(), got.data(), dropout,
                                    nullptr);
        expect_near(got.copy(), forward, 0);
        expect_near(got_dx.copy(), want_dx, this->kBound);
        got_dx = fresh();
        cuda::gelu_dropout_backward<T>(count, x.data(), dy.data(), got_dx.data(), nullptr, dropout,
                                       nullptr);
        expect_near(got_dx.copy(), want_dx, this->kBound);
        ref::dropout_add(count, wide_dy.data(), wide_x.data(), want.data(), dropout);
        cuda::dropout_add(count, dy.data(), x.data(), got.data(), dropout, nullptr);
        expect_near(got.copy(), want, this->kBound);
        ref::apply_dropout(count, wide_x.data(), want.data(), dropout);
        cuda::apply_dropout(count, x.data(), x.data(), dropout, nullptr);
        expect_near(x.copy(), want, this->kBound);
      }
    }
  }
}

// Rows of one block and of several, which share a dropout row or have some each.
TYPED_TEST(SimulatedCuda, GeluSumsColumnsOfItsGradient) {
  using T = TypeParam;
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 128}, {33, 256}, {513, 128}, {70, 1152}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    const int64_t count = rows * columns;
    const Dropout dropout{0.1, 7, 3};
    const auto x = random_values<T>(count, 1, 3), dy = random_values<T>(count, 2);
    auto want = unwritten<T>(count), want_dx = want, got = want, got_dx = want;
    const int64_t runs = cuda::gelu_sums(rows);
    auto sums = unwritten<float>(runs * columns);
    cuda::gelu_dropout_backward<T>(count, x.data(), dy.data(), want_dx.data(), want.data(), dropout,
                                   nullptr);
    ASSERT_TRUE(cuda::takes_gelu_sums(columns, x.data(), dy.data()));
    cuda::gelu_dropout_backward_and_sums<T>(rows, columns, x.data(), dy.data(), got_dx.data(),
                                            got.data(), sums.data(), dropout, nullptr);
    expect_near(got, want, this->kBound);
    expect_near(got_dx, want_dx, this->kBound);
    std::vector<double> all(static_cast<size_t>(columns)), want_all = all;
    for (size_t n = 0; n < sums.size(); ++n) all[n % all.size()] += sums[n];
    for (size_t n = 0; n < want_dx.size(); ++n) want_all[n % all.size()] += float(want_dx[n]);
    expect_near(all, want_all, std::is_same_v<T, float> ? 1e-4 : 0.1);
  }
}

// Values and gates are halves of rows, at an aligned place or not.
TYPED_TEST(SimulatedCuda, GatesMatchTheReference) {
  using T = TypeParam;
  for (const int64_t columns : {1, 8, 15, 16, 64, 100}) {
    for (const int64_t rows : {1, 3, 300}) {
      for (const int kind : {0, 1, 2}) {  // GLU, SiLU times values, SiLU alone
        SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << kind);
        const auto x = random_values<T>(2 * rows * columns, 1, 3),
                   dy = random_values<T>(rows * columns, 2);
        const std::vector<double> wide_x(x.begin(), x.end()), wide_dy(dy.begin(), dy.end());
        const auto run = [&](const auto& in, const auto& grad, auto& y, auto& dx, auto forward,
                             auto backward) {
          using U = typename std::decay_t<decltype(in)>::value_type;
          const bool has_values = kind < 2;
          const int64_t stride = 2 * columns;
          const Gate<U> p{rows,
                          columns,
                          has_values ? stride : 0,
                          stride,
                          has_values ? in.data() : nullptr,
                          in.data() + columns,
                          kind > 0};
          forward(p, y.data());
          backward(p, grad.data(),
                   GateGradients<U>{has_values ? stride : 0, stride,
                                    has_values ? dx.data() : nullptr, dx.data() + columns});
        };
        auto y = unwritten<T>(rows * columns);
        std::vector<T> dx(x.size());
        std::vector<double> want_y(y.size()), want_dx(x.size());
        run(
            x, dy, y, dx, [](const auto& p, auto* to) { cuda::gate_forward(p, to, nullptr); },
            [](const auto& p, const auto* g, const auto& to) {
              cuda::gate_backward(p, g, to, nullptr);
            });
        run(
            wide_x, wide_dy, want_y, want_dx, [](const auto& p, auto* to) { gate_forward(p, to); },
            [](const auto& p, const auto* g, const auto& to) { gate_backward(p, g, to); });
        expect_near(y, want_y, this->kBound);
        expect_near(dx, want_dx, this->kBound);
      }
    }
  }
}

TYPED_TEST(SimulatedCuda, GatesStayFiniteAtHugeValuesAndPassNaNOn) {
  using T = TypeParam;
  const std::vector<T> x = {200, -200, 3e38f, -3e38f, 0, T(std::nanf("")), 1, 1};
  const std::vector<T> one(8, T(1));
  std::vector<T> y(8), dx(8);
  const Gate<T> p{1, 8, 0, 8, nullptr, x.data(), true};
  cuda::gate_forward(p, y.data(), nullptr);
  cuda::gate_backward(p, one.data(), {0, 8, nullptr, dx.data()}, nullptr);
  for (const size_t n : {0, 2}) {
    EXPECT_EQ(float(y[n]), float(x[n]));
    EXPECT_EQ(float(dx[n]), 1);
    EXPECT_EQ(float(y[n + 1]), 0);
    EXPECT_EQ(float(dx[n + 1]), 0);
  }
  EXPECT_TRUE(std::isnan(float(y[5])) && std::isnan(float(dx[5])));
}

TYPED_TEST(SimulatedCuda, ShortConvolutionsMatchTheReference) {
  using T = TypeParam;
  struct Sizes {
    int64_t batch, length, channels, width, future, gap;
    bool padded;
  };
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 0, 0, false},
                         {2, 9, 5, 4, 0, 3, true},
                         {2, 40, 16, 4, 3, 0, false},
                         {3, 2, 34, 8, 4, 2, true},
                         {1, 63, 3, 3, 1, 0, false},
                         {2, 64, 300, 4, 0, 4, true},
                         {2, 65, 20, 4, 3, 0, false},
                         {1, 200, 16, 8, 7, 0, true},
                         {35, 70, 2, 2, 0, 0, true}}) {
    SCOPED_TRACE(testing::Message() << s.length << " x " << s.channels << ", width " << s.width);
    const int64_t stride = s.channels + s.gap, rows = s.batch * s.length;
    auto x = random_values<T>(rows * stride, 1), grad = random_values<T>(rows * s.channels, 2);
    const auto kernel = random_values<float>(s.width * s.channels, 3),
               bias = random_values<float>(s.channels, 4);
    std::vector<uint8_t> valid(static_cast<size_t>(rows), 1);
    for (int64_t row = 0; s.padded && row < rows; ++row) {
      valid[static_cast<size_t>(row)] = row % s.length < s.length - row / s.length % 5;
      if (valid[static_cast<size_t>(row)] != 0) continue;
      for (int64_t c = 0; c < s.channels; ++c) {
        x[static_cast<size_t>(row * stride + c)] = T(std::nanf(""));
        grad[static_cast<size_t>(row * s.channels + c)] = T(7);
      }
    }
    const std::vector<double> wide_x(x.begin(), x.end()), wide_grad(grad.begin(), grad.end()),
        wide_kernel(kernel.begin(), kernel.end()), wide_bias(bias.begin(), bias.end());
    const ShortConvolution<T> p{s.batch, s.length, s.channels,   s.width,       s.future,
                                stride,  x.data(), valid.data(), kernel.data(), bias.data()};
    const ShortConvolution<double> q{
        s.batch,       s.length,     s.channels,         s.width,         s.future, stride,
        wide_x.data(), valid.data(), wide_kernel.data(), wide_bias.data()};
    auto y = unwritten<T>(rows * s.channels), dx = unwritten<T>(rows * s.channels);
    auto parameters = unwritten<float>((s.width + 1) * s.channels);
    auto scratch = unwritten<float>(cuda::short_convolution_scratch(p));
    std::vector<double> want_y(y.size()), want_dx(y.size()), want_parameters(parameters.size());
    cuda::short_convolution_forward(p, y.data(), nullptr);
    cuda::short_convolution_backward(p, grad.data(), dx.data(), parameters.data(), scratch.data(),
                                     nullptr);
    short_convolution_forward(q, want_y.data());
    short_convolution_backward(q, wide_grad.data(), want_dx.data(), want_parameters.data());
    expect_near(y, want_y, this->kBound);
    expect_near(dx, want_dx, this->kBound);
    expect_near(parameters, want_parameters, 2e-5);
  }
}

TYPED_TEST(SimulatedCuda, GeluStaysFiniteAtHugeValuesAndPassesNaNOn) {
  using T = TypeParam;
  std::vector<T> x = {1e30f, -1e30f, 3e38f, -3e38f, 12, -12, 10, -10};
  x.resize(128, T(std::numeric_limits<float>::quiet_NaN()));
  const std::vector<T> one(x.size(), T(1));
  std::vector<T> y(x.size()), dx(x.size());
  cuda::gelu_dropout_backward<T>(128, x.data(), one.data(), dx.data(), y.data(), {}, nullptr);
  for (size_t n = 0; n < 8; n += 2) {
    EXPECT_EQ(float(y[n]), float(x[n]));
    EXPECT_EQ(float(dx[n]), 1);
    EXPECT_NEAR(y[n + 1] / x[n], 0, 1e-30);
    EXPECT_NEAR(dx[n + 1], 0, 1e-30);
  }
  EXPECT_TRUE(std::isnan(float(y[8])));
  EXPECT_TRUE(std::isnan(float(dx[8])));
}

TYPED_TEST(SimulatedCuda, LayerNormMatchesTheReference) {
  using T = TypeParam;
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                                      {3, 7},
                                      {130, 64},
                                      {257, 200},
                                      {9, 512},
                                      {2300, 4},
                                      {140, 772},
                                      {20, 771}}) {
    SCOPED_TRACE(columns);
    const auto x = random_values<T>(rows * columns, 1), grad = random_values<T>(rows * columns, 2);
    const auto gamma = random_values<float>(columns, 3), beta = random_values<float>(columns, 4);
    auto y = unwritten<T>(rows * columns), dx = unwritten<T>(rows * columns);
    auto mean = unwritten<float>(rows), rstd = unwritten<float>(rows);
    auto grad_gamma = unwritten<float>(columns), grad_beta = unwritten<float>(columns);
    cuda::layer_norm_forward<T>({rows, columns, 1e-6, x.data(), gamma.data(), beta.data(), y.data(),
                                 mean.data(), rstd.data()},
                                nullptr);
    auto scratch = unwritten<float>(cuda::layer_norm_scratch(rows, columns));
    LayerNormBackward<T> backward{
        rows,        columns,      grad.data(), x.data(),          mean.data(),
        rstd.data(), gamma.data(), dx.data(),   grad_gamma.data(), grad_beta.data()};
    cuda::layer_norm_backward<T>(backward, scratch.data(), nullptr);
    auto with_x = unwritten<T>(rows * columns);
    backward.dx = with_x.data();
    backward.beside = x.data();
    cuda::layer_norm_backward<T>(backward, scratch.data(), nullptr);
    const std::vector<double> wide_x(x.begin(), x.end()), wide_grad(grad.begin(), grad.end()),
        wide_gamma(gamma.begin(), gamma.end());
    std::vector<double> want_y(x.size()), want_mean(mean.size()), want_rstd(mean.size());
    for (int64_t row = 0; row < rows; ++row) {
      const double* of_row = wide_x.data() + row * columns;
      double sum = 0, squares = 0;
      for (int64_t n = 0; n < columns; ++n) sum += of_row[n];
      const double centre = sum / static_cast<double>(columns);
      for (int64_t n = 0; n < columns; ++n) squares += (of_row[n] - centre) * (of_row[n] - centre);
      const auto r = static_cast<size_t>(row);
      want_mean[r] = centre;
      want_rstd[r] = 1 / std::sqrt(squares / static_cast<double>(columns) + 1e-6);
      for (int64_t n = 0; n < columns; ++n) {
        want_y[static_cast<size_t>(row * columns + n)] =
            (of_row[n] - centre) * want_rstd[r] * gamma[static_cast<size_t>(n)] +
            beta[static_cast<size_t>(n)];
      }
    }
    std::vector<double> want_dx(x.size()), want_gamma(gamma.size()), want_beta(gamma.size());
    layer_norm_backward<double>({rows, columns, wide_grad.data(), wide_x.data(), want_mean.data(),
                                 want_rstd.data(), wide_gamma.data(), want_dx.data(),
                                 want_gamma.data(), want_beta.data()});
    // A single column has no deviation: rstd is 1000, and so is what rounding becomes.
    const double bound = columns == 1 ? 1e-3 : 4 * this->kBound;
    expect_near(mean, want_mean, 1e-6);
    expect_near(y, want_y, bound);
    expect_near(dx, want_dx, bound);
    for (size_t n = 0; n < want_dx.size(); ++n) want_dx[n] += wide_x[n];
    expect_near(with_x, want_dx, bound);
    expect_near(grad_gamma, want_gamma, columns == 1 ? 1e-3 : 1e-4);
    expect_near(grad_beta, want_beta, 1e-4);
  }
}

TYPED_TEST(SimulatedCuda, HashBucketsAreThoseOfTheReference) {
  using T = TypeParam;
  for (const int64_t half : {1, 5, 32, 40}) {
    const HashShape shape{2, 3, 37, 12, 2, half};
    const int64_t rows = shape.batch * shape.heads * shape.length;
    const auto x = random_values<T>(rows * shape.head_dim, 1);
    const auto rotations =
        random_values<float>(shape.heads * shape.rounds * shape.head_dim * half, 2);
    std::vector<uint8_t> mask(static_cast<size_t>(shape.batch * shape.length), 1);
    for (size_t n = 0; n < mask.size(); n += 3) mask[n] = 0;
    const HeadView<const T> view{x.data(), shape.heads * shape.length * shape.head_dim,
                                 shape.length * shape.head_dim, shape.head_dim};
    std::vector<int32_t> got(static_cast<size_t>(rows * shape.rounds), -1), want = got;
    cuda::hash_buckets<T>(shape, view, rotations.data(), mask.data(), got.data(), nullptr);
    hash_buckets<T>(shape, view, rotations.data(), mask.data(), want.data());
    EXPECT_EQ(got, want) << half;
  }
}

TEST(SimulatedCudaRotations, AreNumbersOfRandomStreams) {
  const int64_t heads = 3, rounds = 2, count = 321;
  std::vector<float> got(static_cast<size_t>(heads * rounds * count), -9), want;
  cuda::draw_rotations(heads, rounds, count, 5, got.data(), nullptr);
  for (uint32_t n = 0; n < heads * rounds; ++n) {
    RandomStream stream(derive_key(5, RandomUse::kMixer, n / rounds, n % rounds));
    for (int64_t i = 0; i < count; ++i) want.push_back(static_cast<float>(stream.normal()));
  }
  expect_near(got, want, 1e-6);
}

TEST(SimulatedCudaAdam, StepsMatchTheReference) {
  const int64_t count = 1000;
  AdamStep step{.learning_rate = 0.05, .weight_decay = 0.1, .grad_scale = 0.25};
  auto p = random_values<float>(count, 1);
  std::vector<float> m(p.size(), 0), v = m;
  std::vector<double> want_p(p.begin(), p.end()), want_m(p.size(), 0), want_v = want_m;
  const std::array<double, 5> norms = {1, 3, 8, std::numeric_limits<double>::quiet_NaN(), 3.5};
  for (const double& norm : norms) {
    constexpr double kClip = 2;
    AdamStep clipped = step;
    if (norm > kClip) clipped.grad_scale *= kClip / norm;
    const auto gradients = random_values<float>(count, 10 + static_cast<uint64_t>(step.step));
    const std::vector<double> wide(gradients.begin(), gradients.end());
    cuda::adam_step(count, p.data(), gradients.data(), m.data(), v.data(), step,
                    step.step > 0 ? &norm : nullptr, kClip, nullptr);
    ref::adam_step(count, want_p.data(), wide.data(), want_m.data(), want_v.data(), clipped);
    ++step.step;
  }
  expect_near(p, want_p, 1e-6);
  expect_near(m, want_m, 1e-6);
  expect_near(v, want_v, 1e-6);
}

TEST(SimulatedCudaAdam, NormsMatchTheReference) {
  for (const int64_t count : {1, 255, 8192, 8193, 30000}) {
    auto x = random_values<float>(count, 5);
    std::vector<double> scratch(static_cast<size_t>(cuda::sum_of_squares_parts(count)));
    double norm = -1;
    cuda::gradient_norm(count, x.data(), scratch.data(), &norm, nullptr);
    EXPECT_NEAR(norm, std::sqrt(ref::sum_of_squares(count, x.data()).sum), 1e-12 * norm);
    x.back() = std::numeric_limits<float>::infinity();
    cuda::gradient_norm(count, x.data(), scratch.data(), &norm, nullptr);
    EXPECT_FALSE(std::isfinite(norm));
  }
}

TEST(SimulatedCudaLists, AreTransposed) {
  // Two lists of three query blocks over two key blocks.
  const std::vector<int64_t> offsets = {0, 2, 3, 3, 4, 5, 6};
  const std::vector<int32_t> key_blocks = {1, 0, 1, 0, 0, 1};
  const BlockLists blocks{4, 5, 2, offsets.data(), key_blocks.data()};
  const cuda::TransposedLists of = cuda::transpose(blocks, 11, 10);
  EXPECT_EQ(of.offsets, (std::vector<int64_t>{0, 1, 3, 5, 6}));
  EXPECT_EQ(of.query_blocks, (std::vector<int32_t>{0, 0, 1, 0, 1, 2}));
}

}  // namespace
}  // namespace lra::kernels
