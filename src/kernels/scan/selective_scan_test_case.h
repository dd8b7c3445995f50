// Problems of the selective scan for the tests of its kernels.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "kernels/scan/selective_scan.h"
#include "kernels/scan/test_error.h"
#include "kernels/scan/test_padding.h"

namespace lra::kernels {

struct SelectiveShape {
  int64_t batch, length, channels, states, groups = 1;
  bool reversed = false;
  bool complex = false;

  int64_t state_numbers() const { return complex ? 2 * states : states; }
};

// One problem with its gradients, in arrays of type T.
template <typename T>
struct SelectiveCase {
  using W = Wide<T>;

  // Steps around `dt`, rates of decay up to 2, frequencies around 3. With `padded`, lengths from 0
  // to all.
  SelectiveCase(const SelectiveShape& shape, bool padded, double dt = 0.3) : shape(shape) {
    RandomStream random(static_cast<uint64_t>(shape.length * 100 + shape.channels));
    const int64_t rows = shape.batch * shape.length;
    const auto draw = [&](auto& to, int64_t count, double size, double shift) {
      for (int64_t i = 0; i < count; ++i) {
        to.push_back(static_cast<float>(shift + size * random.normal()));
      }
    };
    draw(x, rows * shape.channels, 1, 0);
    draw(raw_dt, rows * shape.channels, 1, 0);
    draw(grad, rows * shape.channels, 1, 0);
    draw(b, rows * shape.groups * shape.state_numbers(), 1, 0);
    draw(c, rows * shape.groups * shape.state_numbers(), 1, 0);
    draw(bias, shape.state_numbers() * shape.channels, 1, 0);
    draw(skip, shape.channels, 1, 0);
    draw(dt_bias, shape.channels, 0.3, std::log(std::expm1(dt)));
    for (int64_t i = 0; i < shape.states * shape.channels; ++i) {
      a.push_back(static_cast<float>(-2 * random.uniform()));
    }
    if (shape.complex) draw(frequency, shape.states * shape.channels, 3, 0);
    if (padded) lengths = draw_lengths(random, shape.batch, shape.length);
  }
  // The same numbers in double.
  template <typename U>
  explicit SelectiveCase(const SelectiveCase<U>& other)
      : shape(other.shape),
        x(other.x.begin(), other.x.end()),
        raw_dt(other.raw_dt.begin(), other.raw_dt.end()),
        b(other.b.begin(), other.b.end()),
        c(other.c.begin(), other.c.end()),
        grad(other.grad.begin(), other.grad.end()),
        a(other.a.begin(), other.a.end()),
        frequency(other.frequency.begin(), other.frequency.end()),
        bias(other.bias.begin(), other.bias.end()),
        dt_bias(other.dt_bias.begin(), other.dt_bias.end()),
        skip(other.skip.begin(), other.skip.end()),
        lengths(other.lengths) {}

  SelectiveScan<T> problem() const {
    return {.batch = shape.batch,
            .length = shape.length,
            .channels = shape.channels,
            .states = shape.states,
            .groups = shape.groups,
            .reversed = shape.reversed,
            .x = x.data(),
            .raw_dt = raw_dt.data(),
            .b = b.data(),
            .c = c.data(),
            .lengths = lengths.empty() ? nullptr : lengths.data(),
            .a = a.data(),
            .frequency = shape.complex ? frequency.data() : nullptr,
            .bias = bias.empty() ? nullptr : bias.data(),
            .dt_bias = dt_bias.data(),
            .skip = skip.empty() ? nullptr : skip.data()};
  }
  SelectiveScanBackward<T> backward() {
    return {problem(),     grad.data(),   grad_x.data(),         grad_dt.data(),
            grad_b.data(), grad_c.data(), grad_parameters.data()};
  }
  // Makes room for results, with numbers that they are not.
  void clear() {
    y.assign(x.size(), T(7));
    grad_x = grad_dt = y;
    grad_b.assign(b.size(), T(7));
    grad_c = grad_b;
    grad_parameters.assign(static_cast<size_t>(selective_parameters(problem())), W(7));
  }
  void run() {
    clear();
    selective_scan_forward(problem(), y.data());
    selective_scan_backward(backward());
  }
  // The same with the states that the forward pass keeps.
  void run_keeping_states() {
    clear();
    starts.assign(static_cast<size_t>(selective_starts(problem())), W(7));
    selective_scan_forward(problem(), y.data(), starts.data());
    auto problem = backward();
    problem.starts = starts.data();
    selective_scan_backward(problem);
  }
  // Padding becomes NaN.
  void spoil_padding() {
    const auto spoil = [&](std::vector<T>& rows, int64_t width) {
      lra::kernels::spoil_padding(lengths, shape.length, width, rows);
    };
    for (auto* rows : {&x, &raw_dt, &grad}) spoil(*rows, shape.channels);
    for (auto* rows : {&b, &c}) spoil(*rows, shape.groups * shape.state_numbers());
  }

  SelectiveShape shape;
  std::vector<T> x, raw_dt, b, c, grad, y, grad_x, grad_dt, grad_b, grad_c;
  std::vector<W> a, frequency, bias, dt_bias, skip, grad_parameters, starts;
  std::vector<int32_t> lengths;
};

// Compares results with the reference's in double.
template <typename T>
void expect_agrees_with_double(const SelectiveCase<T>& got, double value, double gradient) {
  SelectiveCase<double> want(got);
  want.run();
  EXPECT_LE(relative_error(got.y, want.y), value);
  EXPECT_LE(relative_error(got.grad_x, want.grad_x), gradient);
  EXPECT_LE(relative_error(got.grad_dt, want.grad_dt), gradient);
  EXPECT_LE(relative_error(got.grad_b, want.grad_b), gradient);
  EXPECT_LE(relative_error(got.grad_c, want.grad_c), gradient);
  EXPECT_LE(relative_error(got.grad_parameters, want.grad_parameters), gradient);
}

}  // namespace lra::kernels
