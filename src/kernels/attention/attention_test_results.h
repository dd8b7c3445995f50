// What tests of attention do with its results: compare them, and spoil what must not be read.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
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
  EXPECT_LE(largest_error(got.logsumexp, want.logsumexp), value_bound);
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

// The even keys of a finished case, or the odd ones, with the output and logsumexp of all;
// gradients are to be computed.
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

// The gradients of the two halves add up to the whole's; a key has one from its own half alone.
template <typename T, typename U>
void expect_halves_add_up(const AttentionCase<T>& even, const AttentionCase<T>& odd,
                          const AttentionCase<U>& whole, double bound) {
  const auto sum = [](const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<double> both;
    for (size_t n = 0; n < a.size(); ++n) both.push_back(double{a[n]} + double{b[n]});
    return both;
  };
  EXPECT_LE(largest_error(sum(even.grad_q, odd.grad_q), whole.grad_q), bound);
  EXPECT_LE(largest_error(sum(even.grad_k, odd.grad_k), whole.grad_k), bound);
  EXPECT_LE(largest_error(sum(even.grad_v, odd.grad_v), whole.grad_v), bound);
}

// Cases whose keys are to be halved. With a window of one key a row sees one half alone.
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
    expect_halves_add_up(even, odd, want, 1e-4);
  }
}

// Puts NaN where the masks say that nothing may be read.
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
