// Helpers of the tests of attention: compare results, and spoil memory that must not be read.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/attention_test_case.h"
#include "kernels/attention/attention_test_settings.h"

namespace lra::kernels {

// Largest difference, relative to the largest value (and at least 1). Infinities must agree.
template <typename T, typename U>
double largest_error(const std::vector<T>& got, const std::vector<U>& want) {
  double error = 0, size = 1;
  for (size_t n = 0; n < got.size(); ++n) {
    const double a = got[n], b = want[n];
    if (a == b) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
    error = std::max(error, std::abs(a - b));
    size = std::max(size, std::abs(b));
  }
  return error / size;
}

template <typename T, typename U>
void expect_same_results(const AttentionCase<T>& got, const AttentionCase<U>& want,
                         double value_bound, double gradient_bound) {
  EXPECT_LE(largest_error(got.out, want.out), value_bound);
  EXPECT_LE(largest_error(got.logsumexp(), want.logsumexp()), value_bound);
  EXPECT_LE(largest_error(got.grad_q, want.grad_q), gradient_bound);
  EXPECT_LE(largest_error(got.grad_k, want.grad_k), gradient_bound);
  EXPECT_LE(largest_error(got.grad_v, want.grad_v), gradient_bound);
  EXPECT_LE(largest_error(got.grad_bias, want.grad_bias), gradient_bound);
}

template <typename T>
void run_reference(AttentionCase<T>& c) {
  ref::attention_forward(c.problem(), c.forward_args());
  ref::attention_backward(c.problem(), c.backward_args());
}

// The even keys of a finished case, or the odd ones, with the output, largest scores and sums of
// all; gradients are to be computed.
template <typename T>
AttentionCase<T> half_of_keys(const AttentionCase<T>& whole, int64_t half) {
  AttentionCase<T> part = whole;
  part.settings.key_mask = true;
  part.key_mask.clear();
  for (int64_t n = 0; n < whole.shape.batch * whole.shape.key_length; ++n) {
    part.key_mask.push_back(n % whole.shape.key_length % 2 == half);
  }
  const T nan = std::numeric_limits<Wide<T>>::quiet_NaN();
  for (auto* x : {&part.grad_q, &part.grad_k, &part.grad_v}) x->assign(x->size(), nan);
  return part;
}

// Gradients of q, k and v; those of halves of the keys added up.
using Gradients = std::array<std::vector<double>, 3>;
template <typename... Cases>
Gradients sum_of_gradients(const Cases&... cases) {
  Gradients sums;
  const auto add = [](const auto& x, std::vector<double>& sum) {
    sum.resize(x.size());
    for (size_t n = 0; n < x.size(); ++n) sum[n] += double{x[n]};
  };
  const auto add_all = [&](const auto& c) {
    add(c.grad_q, sums[0]);
    add(c.grad_k, sums[1]);
    add(c.grad_v, sums[2]);
  };
  (add_all(cases), ...);
  return sums;
}
template <typename T>
std::array<double, 3> gradient_errors(const Gradients& got, const AttentionCase<T>& want) {
  return {largest_error(got[0], want.grad_q), largest_error(got[1], want.grad_k),
          largest_error(got[2], want.grad_v)};
}

// Cases whose keys are to be halved. With a window of one key, a row sees only one half.
inline std::vector<CaseSettings> halved_cases() {
  CaseSettings all = settings_of(2, 2, 130, 300, 20);
  all.dropout_rate = 0.2;
  CaseSettings near = settings_of(1, 2, 70, 70, 8);
  near.left = near.right = 0;
  CaseSettings listed = settings_of(1, 1, 90, 90, 8);
  listed.query_block = listed.key_block = 1;
  return {all, near, listed};
}

// Backward passes over the halves of the keys, given what a pass over all keys left: in float32,
// against the reference in float64.
template <typename Run, typename RunBackward>
void expect_gradients_of_parts(Run&& run, RunBackward&& run_backward) {
  for (const CaseSettings& settings : halved_cases()) {
    AttentionCase<double> want(settings);
    run_reference(want);
    AttentionCase<float> whole(settings);
    run(whole);
    auto even = half_of_keys(whole, 0), odd = half_of_keys(whole, 1);
    for (auto* half : {&even, &odd}) run_backward(*half);
    for (const double error : gradient_errors(sum_of_gradients(even, odd), want)) {
      EXPECT_LE(error, 1e-4);
    }
  }
}

// Makes all scores about `size`, a power of two, and exact; every odd key has the scores of the
// even one before it. Heads 16 wide.
template <typename T>
void make_scores_large(AttentionCase<T>& c, double size) {
  const auto whole_numbers = [&](std::vector<T>& x, double first) {
    for (size_t n = 0; n < x.size(); ++n) {
      const double near = std::round(double{Wide<T>{x[n]}});
      x[n] = static_cast<Wide<T>>(n % 16 == 0 ? first : std::clamp(near, -3.0, 3.0));
    }
  };
  whole_numbers(c.q, 2048);
  whole_numbers(c.k, 4 * size / 2048);
  const HeadView<T> keys = c.of_keys(c.k);
  for (int64_t plane = 0; plane < c.shape.batch * c.shape.heads; ++plane) {
    const int64_t b = plane / c.shape.heads, h = plane % c.shape.heads;
    for (int64_t j = 1; j < c.shape.key_length; j += 2) {
      std::copy_n(keys.row(b, h, j - 1), 16, keys.row(b, h, j));
    }
  }
}

// The results of two forward passes, over one half of the keys each, in one softmax.
template <typename T>
AttentionCase<T> merged(AttentionCase<T> even, AttentionCase<T> odd) {
  const auto [B, H, L, S, E, value_dim] = even.shape;
  const HeadView<T> out = even.of_queries(even.out), other = odd.of_queries(odd.out);
  for (int64_t row = 0; row < B * H * L; ++row) {
    if (odd.sum[row] == 0) continue;
    const auto largest = std::max(even.largest[row], odd.largest[row]);
    const auto share = [&](const AttentionCase<T>& half) {
      return half.sum[row] * std::exp(even.problem().scale * (half.largest[row] - largest));
    };
    const double mine = even.sum[row] == 0 ? 0 : share(even), sum = mine + share(odd);
    for (int64_t e = 0; e < E; ++e) {
      T& x = out.row(row / (H * L), row / L % H, row % L)[e];
      const T& y = other.row(row / (H * L), row / L % H, row % L)[e];
      x = static_cast<Wide<T>>(Wide<T>{x} * (mine / sum) + Wide<T>{y} * (1 - mine / sum));
    }
    even.largest[row] = largest;
    even.sum[row] = static_cast<Wide<T>>(sum);
  }
  return even;
}

// Passes over the halves of the keys, in one softmax, where the largest scores of both are equal
// and large: against the reference in float64 on all keys. Slopes cancel against a large coordinate
// of the keys, in one pass over all of them too: the bound, or three times the error of that one.
template <typename T, typename RunForward, typename RunBackward>
void expect_halves_of_large_scores_add_up(RunForward&& run_forward, RunBackward&& run_backward,
                                          double value_bound, double gradient_bound) {
  for (const double size : {0x1p0, 0x1p14, 0x1p20}) {
    for (const int64_t window : {-1, 20}) {
      SCOPED_TRACE(testing::Message() << "scores of " << size << ", window " << window);
      CaseSettings settings = settings_of(2, 2, 130, 300, 16);
      settings.dropout_rate = 0.2;
      settings.left = settings.right = window;
      settings.bf16_values = true;
      AttentionCase<double> want(settings);
      AttentionCase<T> whole(settings);
      make_scores_large(want, size);
      make_scores_large(whole, size);
      run_reference(want);
      auto even = half_of_keys(whole, 0), odd = half_of_keys(whole, 1);
      for (auto* half : {&even, &odd}) run_forward(*half);
      const AttentionCase<T> all = merged(even, odd);
      EXPECT_LE(largest_error(all.out, want.out), value_bound);
      even = half_of_keys(all, 0);
      odd = half_of_keys(all, 1);
      run_forward(whole);
      for (auto* c : {&whole, &even, &odd}) run_backward(*c);
      const auto dense = gradient_errors(sum_of_gradients(whole), want);
      const auto errors = gradient_errors(sum_of_gradients(even, odd), want);
      for (size_t n = 0; n < 3; ++n) {
        EXPECT_LE(errors[n], std::max(gradient_bound, 3 * dense[n])) << "of q, k, v: " << n;
      }
    }
  }
}

// Scores of 1e16 and more must give finite numbers; products that overflow need not, and then no
// query may look as if it saw nothing.
template <typename T, typename Run>
void expect_finite_or_nan(Run&& run, double bound) {
  for (const int64_t right : {-1, 40}) {
    CaseSettings settings = settings_of(2, 2, 70, 90, 16);
    settings.right = right;
    settings.bf16_values = true;
    const auto times = [&](auto& c, float factor) {
      for (auto* x : {&c.q, &c.k}) {
        for (auto& value : *x) value = static_cast<float>(value) * factor;
      }
    };
    AttentionCase<T> overflown(settings);
    for (const float factor : {0x1p27f, 0x1p50f}) {
      SCOPED_TRACE(testing::Message() << "inputs times " << factor << ", right " << right);
      AttentionCase<double> exact(settings);
      AttentionCase<T> got(settings);
      times(exact, factor);
      times(got, factor);
      run(got);
      run_reference(exact);
      EXPECT_LE(largest_error(got.out, exact.out), bound);
      EXPECT_LE(largest_error(got.grad_v, exact.grad_v), bound);
    }
    std::fill(overflown.q.begin(), overflown.q.end(), T(0x1p70f));
    std::fill(overflown.k.begin(), overflown.k.end(), T(-0x1p70f));
    run(overflown);
    for (const T& x : overflown.out) EXPECT_TRUE(std::isnan(Wide<T>{x}));
  }
}

// Puts NaN wherever the masks forbid reading.
template <typename T>
void spoil_masked(AttentionCase<T>& c) {
  const T nan = std::numeric_limits<float>::quiet_NaN();
  const AttentionShape& s = c.shape;
  const auto spoil = [&](HeadView<T> view, const std::vector<uint8_t>& mask, int64_t length) {
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t row = 0; row < length; ++row) {
        if (mask[b * length + row]) continue;
        for (int64_t h = 0; h < s.heads; ++h) std::fill_n(view.row(b, h, row), s.head_dim, nan);
      }
    }
  };
  for (auto* x : {&c.k, &c.v}) spoil(c.of_keys(*x), c.key_mask, s.key_length);
  for (auto* x : {&c.q, &c.grad_out}) spoil(c.of_queries(*x), c.query_mask, s.query_length);
}

}  // namespace lra::kernels
