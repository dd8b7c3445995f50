// Problems of the state recurrence for the tests of its kernels.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/rng.h"
#include "kernels/scan/state_scan.h"
#include "kernels/scan/test_error.h"
#include "kernels/scan/test_padding.h"

namespace lra::kernels {

struct StateShape {
  int64_t batch, length, states, directions = 2;
};

// One problem with its gradients, in arrays of type T.
template <typename T>
struct StateCase {
  using W = Wide<T>;

  // |a| is at least 1 - decay, at angles up to pi. With `padded`, lengths from 0 to all.
  StateCase(const StateShape& shape, bool padded, double decay = 0.2) : shape(shape) {
    RandomStream random(static_cast<uint64_t>(shape.length * 100 + shape.states));
    const int64_t rows = shape.batch * shape.length;
    const auto draw = [&](std::vector<T>& to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to.push_back(static_cast<float>(random.normal()));
    };
    draw(v, rows * 2 * shape.states);
    draw(grad, rows * shape.directions * 2 * shape.states);
    a.resize(static_cast<size_t>(2 * shape.states));
    for (int64_t n = 0; n < shape.states; ++n) {
      const double size = 1 - decay * random.uniform(), angle = std::numbers::pi * random.uniform();
      a[static_cast<size_t>(n)] = static_cast<float>(size * std::cos(angle));
      a[static_cast<size_t>(shape.states + n)] = static_cast<float>(size * std::sin(angle));
    }
    if (padded) lengths = draw_lengths(random, shape.batch, shape.length);
  }
  // The same numbers in double.
  template <typename U>
  explicit StateCase(const StateCase<U>& other)
      : shape(other.shape),
        v(other.v.begin(), other.v.end()),
        grad(other.grad.begin(), other.grad.end()),
        a(other.a.begin(), other.a.end()),
        lengths(other.lengths) {}

  StateScan<T> problem() const {
    return {.batch = shape.batch,
            .length = shape.length,
            .states = shape.states,
            .directions = shape.directions,
            .v = v.data(),
            .lengths = lengths.empty() ? nullptr : lengths.data(),
            .a = a.data()};
  }
  StateScanBackward<T> backward() {
    return {problem(), x.data(), grad.data(), grad_v.data(), grad_a.data()};
  }
  // Makes room for results, with numbers that they are not.
  void clear() {
    x.assign(grad.size(), T(7));
    grad_v.assign(v.size(), T(7));
    grad_a.assign(a.size(), W(7));
  }
  void run() {
    clear();
    state_scan_forward(problem(), x.data());
    state_scan_backward(backward());
  }
  // Padding becomes NaN.
  void spoil_padding() {
    lra::kernels::spoil_padding(lengths, shape.length, 2 * shape.states, v);
    lra::kernels::spoil_padding(lengths, shape.length, shape.directions * 2 * shape.states, grad);
  }

  StateShape shape;
  std::vector<T> v, grad, x, grad_v;
  std::vector<W> a, grad_a;
  std::vector<int32_t> lengths;
};

// Compares results with the reference's in double.
template <typename T>
void expect_agrees_with_double(const StateCase<T>& got, double value, double gradient) {
  StateCase<double> want(got);
  want.run();
  EXPECT_LE(relative_error(got.x, want.x), value);
  EXPECT_LE(relative_error(got.grad_v, want.grad_v), gradient);
  EXPECT_LE(relative_error(got.grad_a, want.grad_a), gradient);
}

}  // namespace lra::kernels
