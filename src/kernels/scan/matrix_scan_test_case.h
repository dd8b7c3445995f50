// Problems of the matrix scan for the tests of its kernels.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/scan/matrix_scan.h"
#include "kernels/scan/test_error.h"
#include "kernels/scan/test_padding.h"

namespace lra::kernels {

struct MatrixShape {
  int64_t batch, length, heads, keys, values;
  bool decays_of_rows = false, delta = false;
  int64_t reversed_heads = 0;
  bool scaled = false;  // beta without the delta rule

  int64_t heads_of_a_key = 1;
  bool reads = false;  // of their own, with the delta rule

  bool has_beta() const { return delta || scaled; }
  int64_t key_heads() const { return heads / heads_of_a_key; }
};

// The recurrences of a shape.
inline std::vector<MatrixShape> all_kinds(MatrixShape shape) {
  std::vector<MatrixShape> kinds;
  for (shape.decays_of_rows = false;; shape.decays_of_rows = true) {
    for (const int kind : {0, 1, 2, 3}) {
      shape.delta = kind % 2 == 1;
      shape.scaled = kind == 2;
      shape.reads = kind == 3;
      kinds.push_back(shape);
    }
    if (shape.decays_of_rows) return kinds;
  }
}

inline std::string text_of(const MatrixShape& shape, bool padded) {
  return "L " + std::to_string(shape.length) + " K " + std::to_string(shape.keys) + " V " +
         std::to_string(shape.values) + (shape.decays_of_rows ? " decays of rows" : "") +
         (shape.delta ? " delta" : "") + (shape.reads ? " reads" : "") +
         (shape.scaled ? " scaled" : "") + (padded ? " padded" : "");
}

// One problem with its gradients, in arrays of type T.
template <typename T>
struct MatrixCase {
  using W = Wide<T>;

  // Keys of length about 1, log decays around -`rate`. With `padded`, lengths from 0 to all.
  MatrixCase(const MatrixShape& shape, bool padded, double rate = 0.3) : shape(shape) {
    RandomStream random(static_cast<uint64_t>(shape.length * 100 + shape.keys));
    const int64_t rows = shape.batch * shape.length * shape.heads;
    const auto draw = [&](auto& to, int64_t count, double size) {
      for (int64_t i = 0; i < count; ++i) to.push_back(static_cast<float>(size * random.normal()));
    };
    draw(q, rows / shape.heads_of_a_key * shape.keys, 1);
    draw(k, rows / shape.heads_of_a_key * shape.keys,
         1 / std::sqrt(static_cast<double>(shape.keys)));
    // Near the keys, or the state would grow with every position.
    for (size_t i = 0; shape.reads && i < k.size(); ++i) {
      r.push_back(static_cast<float>(k[i]) * static_cast<float>(1 - 0.2 * random.uniform()));
    }
    draw(v, rows * shape.values, 1);
    draw(grad, rows * shape.values, 1);
    for (int64_t i = 0; i < rows * decays(); ++i) {
      log_decay.push_back(static_cast<float>(-2 * rate * random.uniform()));
    }
    for (int64_t i = 0; shape.has_beta() && i < rows; ++i) {
      beta.push_back(static_cast<float>(random.uniform()));
    }
    if (padded) lengths = draw_lengths(random, shape.batch, shape.length);
  }
  // The same numbers in double.
  template <typename U>
  explicit MatrixCase(const MatrixCase<U>& other)
      : shape(other.shape),
        q(other.q.begin(), other.q.end()),
        k(other.k.begin(), other.k.end()),
        v(other.v.begin(), other.v.end()),
        r(other.r.begin(), other.r.end()),
        grad(other.grad.begin(), other.grad.end()),
        log_decay(other.log_decay.begin(), other.log_decay.end()),
        beta(other.beta.begin(), other.beta.end()),
        lengths(other.lengths) {}

  int64_t decays() const { return shape.decays_of_rows ? shape.keys : 1; }
  MatrixScan<T> problem() const {
    return {.batch = shape.batch,
            .length = shape.length,
            .heads = shape.heads,
            .key_heads = shape.key_heads(),
            .keys = shape.keys,
            .values = shape.values,
            .decays = decays(),
            .reversed_heads = shape.reversed_heads,
            .q_row = shape.key_heads() * shape.keys,
            .k_row = shape.key_heads() * shape.keys,
            .v_row = shape.heads * shape.values,
            .r_row = shape.key_heads() * shape.keys,
            .q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .r = shape.reads ? r.data() : nullptr,
            .log_decay = log_decay.data(),
            .beta = shape.has_beta() ? beta.data() : nullptr,
            .delta = shape.delta,
            .lengths = lengths.empty() ? nullptr : lengths.data()};
  }
  MatrixScanBackward<T> backward() {
    return {problem(),     grad.data(),   grad_q.data(),         grad_k.data(),
            grad_v.data(), grad_r.data(), grad_log_decay.data(), grad_beta.data()};
  }
  // Fills results with numbers that they are not.
  void clear() {
    o.assign(v.size(), T(7));
    grad_v = o;
    grad_q.assign(q.size() * static_cast<size_t>(shape.heads_of_a_key), T(7));
    grad_k = grad_q;
    grad_r.assign(shape.reads ? grad_k.size() : 0, T(7));
    grad_log_decay.assign(log_decay.size(), W(7));
    grad_beta.assign(beta.size(), W(7));
  }
  void run() {
    clear();
    matrix_scan_forward(problem(), o.data());
    matrix_scan_backward(backward());
  }
  // Padding becomes NaN.
  void spoil_padding() {
    const auto spoil = [&](auto& rows, int64_t width) {
      lra::kernels::spoil_padding(lengths, shape.length, shape.heads * width, rows);
    };
    for (auto* rows : {&q, &k, &r}) {
      if (rows->empty()) continue;
      lra::kernels::spoil_padding(lengths, shape.length, shape.key_heads() * shape.keys, *rows);
    }
    spoil(v, shape.values);
    spoil(grad, shape.values);
    spoil(log_decay, decays());
    if (shape.has_beta()) spoil(beta, 1);
  }

  MatrixShape shape;
  std::vector<T> q, k, v, r, grad, o, grad_q, grad_k, grad_v, grad_r;
  std::vector<W> log_decay, beta, grad_log_decay, grad_beta;
  std::vector<int32_t> lengths;
};

// A problem with decays from 1 to below what a float can hold: whole chunks decay to 0.
inline MatrixCase<float> case_of_all_decays(const MatrixShape& shape) {
  MatrixCase<float> one(shape, false, 30);
  for (size_t i = 0; i < one.log_decay.size(); i += 7) one.log_decay[i] = 0;
  for (size_t i = 3; i < one.log_decay.size(); i += 11) one.log_decay[i] = -1000;
  return one;
}

// Compares results with the reference's in double.
template <typename T>
void expect_agrees_with_double(const MatrixCase<T>& got, double value, double gradient) {
  MatrixCase<double> want(got);
  want.run();
  EXPECT_LE(relative_error(got.o, want.o), value);
  EXPECT_LE(relative_error(got.grad_q, want.grad_q), gradient);
  EXPECT_LE(relative_error(got.grad_k, want.grad_k), gradient);
  EXPECT_LE(relative_error(got.grad_v, want.grad_v), gradient);
  EXPECT_LE(relative_error(got.grad_r, want.grad_r), gradient);
  if (got.shape.length > 1) {  // else 0, and rounding errors
    EXPECT_LE(relative_error(got.grad_log_decay, want.grad_log_decay), gradient);
  }
  EXPECT_LE(relative_error(got.grad_beta, want.grad_beta), gradient);
}

}  // namespace lra::kernels
