// Operators of state spaces on a GPU, or with simulated kernels, against those of the CPU.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ops/libtorch.h"
#include "ops/long_convolution.h"
#include "ops/scan/damped_poles.h"
#include "ops/scan/diagonal_scan.h"
#include "ops/scan/gated_scan.h"
#include "ops/scan/held_pairs.h"
#include "ops/scan/matrix_scan.h"
#include "ops/scan/selective_scan.h"
#include "ops/scan/state_scan.h"
#include "ops/test_tensors.h"
#include "tested_device.h"

namespace lra::ops {
namespace {

using at::Tensor;
using Scan = std::function<Tensor(const std::vector<Tensor>& in, const Tensor& mask)>;

// `in` on a device: the first `activations` of them, and the result, of a type; parameters float.
struct Problem {
  Scan scan;
  std::vector<Tensor> in;
  size_t activations;
  Tensor mask;

  // The result and all gradients, on the CPU.
  std::vector<Tensor> results(at::Device device, at::ScalarType type) const {
    std::vector<Tensor> leaves;
    for (size_t n = 0; n < in.size(); ++n) {
      // Values that both types hold.
      const Tensor rounded = in[n].to(at::kBFloat16).to(n < activations ? type : at::kFloat);
      leaves.push_back(rounded.to(device).requires_grad_());
    }
    const Tensor y = scan(leaves, mask.defined() ? mask.to(device) : mask);
    y.backward(random_tensor(y.sizes(), 9).to(at::kBFloat16).to(device, type));
    std::vector<Tensor> all = {y.detach()};
    for (const Tensor& leaf : leaves) all.push_back(leaf.grad());
    for (Tensor& t : all) t = t.to(at::kCPU, at::kFloat);
    return all;
  }
};

// A GPU's own exponential is wrong by two units in the last place, at every position.
double bound_of(at::ScalarType type) {
  if (type != at::kFloat) return 0x1p-6;
  return is_simulated() ? 1e-5 : 1e-4;
}

void expect_results_of_the_cpu(const Problem& problem, const Scan& on_cpu) {
  const Problem expected = {on_cpu, problem.in, problem.activations, problem.mask};
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    SCOPED_TRACE(testing::Message() << type << " mask " << problem.mask.defined());
    const auto want = expected.results(at::kCPU, type);
    const auto got = problem.results(*tested_device(), type);
    const auto again = problem.results(*tested_device(), type);
    ASSERT_EQ(got.size(), want.size());
    for (size_t n = 0; n < got.size(); ++n) {
      EXPECT_LE(relative_error(got[n], want[n]), bound_of(type)) << n;
      EXPECT_TRUE(at::equal(again[n], got[n])) << n;
    }
  }
}

void expect_results_of_the_cpu(const Problem& problem) {
  expect_results_of_the_cpu(problem, problem.scan);
}

Problem selective_problem(int64_t length, int64_t channels, int64_t groups, int64_t states,
                          bool reversed, bool is_complex, const Tensor& mask,
                          Tensor (*function)(const SelectiveScanInput&) = selective_scan) {
  const Scan scan = [=](const std::vector<Tensor>& in, const Tensor& valid) {
    return function({in[0], in[1], -in[4].square(), in[2], in[3], in[5], in[6], in[7], reversed,
                     valid, is_complex ? in[8] : Tensor()});
  };
  const int64_t numbers = is_complex ? 2 * states : states;
  std::vector<Tensor> in = {random_tensor({3, length, channels}, 1),
                            random_tensor({3, length, channels}, 2),
                            random_tensor({3, length, groups, numbers}, 3),
                            random_tensor({3, length, groups, numbers}, 4),
                            random_tensor({states, channels}, 5),
                            random_tensor({channels}, 6) - 1,
                            random_tensor({numbers, channels}, 7),
                            random_tensor({channels}, 8)};
  if (is_complex) in.push_back(3 * random_tensor({states, channels}, 9));
  return {scan, in, 4, mask};
}

Problem state_problem(int64_t length, int64_t states, bool bidirectional, const Tensor& mask) {
  const Scan scan = [=](const std::vector<Tensor>& in, const Tensor& valid) {
    return state_scan(in[0], in[1], bidirectional, valid);
  };
  return {scan,
          {random_tensor({3, length, 2, states}, 1), 0.65 * random_tensor({2, states}, 2)},
          1,
          mask};
}

enum class Rule { kNone, kDelta, kDeltaWithReads };

// Three heads, which share one key; the last runs from the end. Padding holds NaN.
Problem matrix_problem(int64_t length, int64_t keys, int64_t values, bool decays_of_rows, Rule rule,
                       const Tensor& mask,
                       Tensor (*function)(const MatrixScanInput&) = matrix_scan) {
  const bool delta = rule != Rule::kNone, reads = rule == Rule::kDeltaWithReads;
  const Scan scan = [=](const std::vector<Tensor>& in, const Tensor& valid) {
    const size_t first = in.size() - (delta ? 2 : 1);  // of decays and beta, behind activations
    return function({in[0], in[1], in[2], -in[first].square(),
                     delta ? in[first + 1].square() : Tensor(), 1, valid, delta,
                     reads ? in[3] : Tensor()});
  };
  Tensor v = random_tensor({3, length, 3, values}, 3);
  if (mask.defined()) v.masked_fill_(mask.eq(0).unsqueeze(2).unsqueeze(3), std::nan(""));
  std::vector<Tensor> in = {random_tensor({3, length, 1, keys}, 1),
                            random_tensor({3, length, 1, keys}, 2) / std::sqrt(double(keys)), v};
  // Near the keys, or the state would grow with every position.
  if (reads) in.push_back(in[1] * (1 - 0.2 * random_tensor(in[1].sizes(), 6).abs()));
  const size_t activations = in.size();
  in.push_back(random_tensor({3, length, 3, decays_of_rows ? keys : 1}, 4));
  if (delta) in.push_back(random_tensor({3, length, 3}, 5));
  return {scan, in, activations, mask};
}

Problem gated_problem(int64_t length, int64_t channels, const Tensor& mask) {
  const Scan scan = [=](const std::vector<Tensor>& in, const Tensor& valid) {
    return gated_scan(in[1].sigmoid(), in[0], channels / 2, valid);
  };
  Tensor v = random_tensor({3, length, channels}, 1);
  if (mask.defined()) v.masked_fill_(mask.eq(0).unsqueeze(2), std::nan(""));
  return {scan, {v, random_tensor({3, length, channels}, 2)}, 1, mask};
}

struct DiagonalShape {
  int64_t channels, modes, directions;
  bool skip, real;
};

// Poles of length 0.65 to 1 and one that is 0. Padding holds NaN.
Problem diagonal_problem(int64_t length, const DiagonalShape& shape, const Tensor& mask) {
  const auto& [channels, modes, directions, skip, real] = shape;
  const Scan scan = [=](const std::vector<Tensor>& in, const Tensor& valid) {
    const Tensor angle = in[1] * 3;
    Tensor radius = 1 - 0.35 * in[2].square();
    radius = at::cat({at::zeros_like(radius.narrow(0, 0, 1)), radius.narrow(0, 1, modes - 1)});
    const Tensor a = real ? at::stack({radius * angle.sign()})
                          : at::stack({radius * angle.cos(), radius * angle.sin()});
    const Tensor c = in[3].narrow(1, 0, a.size(0));
    return diagonal_scan({in[0], a, c, skip ? in[4] : Tensor(), valid});
  };
  Tensor x = random_tensor({3, length, channels}, 1);
  if (mask.defined()) x.masked_fill_(mask.eq(0).unsqueeze(2), std::nan(""));
  std::vector<Tensor> in = {x, random_tensor({modes, channels}, 2),
                            random_tensor({modes, channels}, 3),
                            random_tensor({directions, 2, modes, channels}, 4)};
  if (skip) in.push_back(random_tensor({channels}, 5));
  return {scan, in, 1, mask};
}

// Sizes around the 32 channels and positions of a tile, the 16 lags of a run, the 4 and 128 modes
// that a block takes at a time, and the 2,048 lags of a block.
TEST(GpuScans, DiagonalScanIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t length : {1, 9, 40, is_simulated() ? 1100 : 3000}) {
    for (const Tensor& mask : {Tensor(), first_ones(length)}) {
      for (const auto& shape :
           {DiagonalShape{5, 3, 2, true, false}, DiagonalShape{33, 2, 2, false, true},
            DiagonalShape{2, 21, 1, true, false}, DiagonalShape{1, 150, 2, true, false}}) {
        SCOPED_TRACE(testing::Message() << length << " x " << shape.channels);
        expect_results_of_the_cpu(diagonal_problem(length, shape, mask));
      }
    }
  }
}

// Kernels shorter and longer than the sequence, and one of a single lag. Padding, which may lie
// between tokens, holds NaN.
TEST(GpuScans, ConvolutionIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t length : {1, 9, is_simulated() ? 130 : 3000}) {
    const Tensor scattered = at::arange(3 * length).remainder(4).gt(0).view({3, length});
    for (const Tensor& mask : {Tensor(), first_ones(length), scattered.to(at::kByte)}) {
      for (const auto& [channels, width, future] :
           {std::array<int64_t, 3>{5, 1, 0}, {33, 7, 2}, {2, 2 * length, length}}) {
        SCOPED_TRACE(testing::Message() << length << " x " << channels << ", " << width << " lags");
        const auto convolved = [future](const std::vector<Tensor>& in, const Tensor& valid) {
          return long_convolution(in[0], valid, in[1], future);
        };
        Tensor x = random_tensor({3, length, channels}, 1);
        if (mask.defined()) x.masked_fill_(mask.eq(0).unsqueeze(2), std::nan(""));
        expect_results_of_the_cpu({convolved, {x, random_tensor({channels, width}, 2)}, 1, mask});
      }
    }
  }
}

TEST(GpuScans, SelectiveScanIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t length : {9, is_simulated() ? 40 : 3000}) {
    for (const Tensor& mask : {Tensor(), first_ones(length)}) {
      for (const bool is_complex : {false, true}) {
        SCOPED_TRACE(is_complex);
        expect_results_of_the_cpu(selective_problem(length, 12, 1, 16, true, is_complex, mask));
        expect_results_of_the_cpu(selective_problem(length, 70, 2, 5, false, is_complex, mask));
      }
    }
  }
}

// More complex states than kernels take, which is composed.
TEST(GpuScans, SelectiveScanTakesAnyNumberOfStates) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t states : {256, 258}) {
    expect_results_of_the_cpu(selective_problem(9, 3, 1, states, false, true, {}));
  }
}

TEST(GpuScans, StateScanIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t length : {9, is_simulated() ? 40 : 3000}) {
    for (const Tensor& mask : {Tensor(), first_ones(length)}) {
      expect_results_of_the_cpu(state_problem(length, 7, true, mask));
      expect_results_of_the_cpu(state_problem(length, 70, false, mask));
    }
  }
}

TEST(GpuScans, MatrixScanIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t length : {9, is_simulated() ? 40 : 3000}) {
    for (const Tensor& mask : {Tensor(), first_ones(length)}) {
      for (const Rule rule : {Rule::kNone, Rule::kDelta, Rule::kDeltaWithReads}) {
        SCOPED_TRACE(static_cast<int>(rule));
        expect_results_of_the_cpu(matrix_problem(length, 12, 33, false, rule, mask));
        expect_results_of_the_cpu(matrix_problem(length, 20, 9, true, rule, mask));
      }
    }
  }
}

// The widest keys that have kernels, and wider ones, which are composed.
TEST(GpuScans, MatrixScanTakesReadsOfAnyWidth) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t keys : {256, 260}) {
    expect_results_of_the_cpu(matrix_problem(9, keys, 3, true, Rule::kDeltaWithReads, {}));
  }
}

// By another way to compute than that of the CPU.
TEST(GpuScans, AreTheirComposedVersions) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const Tensor& mask : {Tensor(), first_ones(37)}) {
    const auto matrix = [&](auto* function) {
      return matrix_problem(37, 20, 9, true, Rule::kDeltaWithReads, mask, function);
    };
    expect_results_of_the_cpu(matrix(matrix_scan), matrix(composed_matrix_scan).scan);
    const auto selective = [&](auto* function) {
      return selective_problem(37, 70, 2, 5, true, true, mask, function);
    };
    expect_results_of_the_cpu(selective(selective_scan), selective(composed_selective_scan).scan);
  }
}

TEST(GpuScans, GatedScanIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t length : {1, 9, 16, is_simulated() ? 40 : 3000}) {
    for (const Tensor& mask : {Tensor(), first_ones(length)}) {
      expect_results_of_the_cpu(gated_problem(length, 7, mask));
      expect_results_of_the_cpu(gated_problem(length, 70, mask));
    }
  }
}

// Poles of channels of their own, and those that all share.
TEST(GpuScans, PairsAreHeldAsOnTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  const auto results = [](at::Device device, int64_t copies, int64_t directions, bool softplus) {
    std::vector<Tensor> leaves;
    for (const Tensor& t : {random_tensor({copies, 7}, 1), 40 * random_tensor({copies, 7}, 2),
                            random_tensor({45}, 3) - 4, random_tensor({directions, 45, 7, 2}, 4)}) {
      leaves.push_back(t.to(at::kFloat).to(device).requires_grad_());
    }
    const auto [a, c] =
        hold_pairs({leaves[0], leaves[1], leaves[2], softplus, softplus}, leaves[3]);
    const Tensor grad_a = random_tensor(a.sizes(), 5).to(device, at::kFloat),
                 grad_c = random_tensor(c.sizes(), 6).to(device, at::kFloat);
    ((a * grad_a).sum() + (c * grad_c).sum()).backward();
    std::vector<Tensor> all = {a.detach().cpu(), c.detach().cpu()};
    for (const Tensor& leaf : leaves) all.push_back(leaf.grad().cpu());
    return all;
  };
  for (const int64_t copies : {1, 45}) {
    for (const bool softplus : {false, true}) {
      const int64_t directions = softplus ? 1 : 2;
      const auto want = results(at::kCPU, copies, directions, softplus),
                 got = results(*tested_device(), copies, directions, softplus);
      for (size_t n = 0; n < want.size(); ++n) {
        EXPECT_LE(relative_error(got[n], want[n]), 2e-6) << copies << " result " << n;
      }
    }
  }
}

TEST(GpuScans, DampedPolesAreThoseOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto& [directions, states, channels] :
       {std::array<int64_t, 3>{1, 1, 1}, {2, 3, 130}, {1, 16, 7}, {2, 16, 45}}) {
    const auto run = [&](at::Device device) {
      std::vector<Tensor> leaves;
      for (uint64_t n = 0; n < 5; ++n) {
        const Tensor t =
            n < 4 ? random_tensor({directions, states, channels}, n) : random_tensor({channels}, n);
        leaves.push_back((2 * t).to(at::kFloat).to(device).requires_grad_());
      }
      const auto poles = damped_poles({leaves[0], leaves[1], leaves[2], leaves[3], leaves[4]});
      std::vector<Tensor> all = {poles.a_1ND, poles.c_K1ND, poles.skip_D};
      Tensor sum = at::zeros({}, leaves[0].options());
      for (Tensor& t : all) {
        sum = sum + (t * random_tensor(t.sizes(), 9).to(device, at::kFloat)).sum();
        t = t.detach().cpu();
      }
      sum.backward();
      for (const Tensor& leaf : leaves) all.push_back(leaf.grad().cpu());
      return all;
    };
    const auto want = run(at::kCPU), got = run(*tested_device());
    for (size_t n = 0; n < want.size(); ++n) {
      EXPECT_EQ(got[n].sizes(), want[n].sizes()) << n;
      EXPECT_LE(relative_error(got[n], want[n]), 2e-6) << channels << " result " << n;
    }
  }
}

TEST(GpuScans, RefuseTensorsOfTheCpuBesideTheirOwnAndDouble) {
  LRA_SKIP_WITHOUT_DEVICE();
  const auto on = [](at::ScalarType type) {
    return at::TensorOptions(type).device(*tested_device());
  };
  const Tensor x = at::zeros({2, 3, 4}), b = at::zeros({2, 3, 1, 5}), v = at::zeros({2, 3, 2, 4});
  const Tensor a = at::zeros({5, 4}), dt_bias = at::zeros({4}), poles = at::zeros({2, 4});
  const auto scan = [&](const at::TensorOptions& here, const at::TensorOptions& parameters) {
    selective_scan(
        {x.to(here), x.to(here), a.to(parameters), b.to(here), b.to(here), dt_bias.to(parameters)});
  };
  EXPECT_THROW(scan(on(at::kFloat), at::kFloat), CheckFailure);
  EXPECT_THROW(scan(on(at::kDouble), on(at::kDouble)), CheckFailure);
  EXPECT_THROW(state_scan(v.to(on(at::kFloat)), poles, true), CheckFailure);
  EXPECT_THROW(state_scan(v.to(on(at::kDouble)), poles.to(on(at::kDouble)), true), CheckFailure);
}

}  // namespace
}  // namespace lra::ops
