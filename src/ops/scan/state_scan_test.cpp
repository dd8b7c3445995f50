#include "ops/scan/state_scan.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

// The states by L x L matrices of powers for each state; in is v, a.
Tensor dense_states(const std::vector<Tensor>& in, bool bidirectional, const Tensor& mask) {
  const Tensor a = at::complex(in[1][0], in[1][1]);
  const int64_t length = in[0].size(1);
  const Tensor valid = mask.defined() ? mask.to(at::kDouble).view({-1, length, 1})
                                      : at::ones({1, 1, 1}, at::kDouble);
  const Tensor v = at::complex(in[0].select(2, 0), in[0].select(2, 1)) * valid;
  const Tensor lag = at::arange(length).unsqueeze(1) - at::arange(length);
  std::vector<Tensor> directions;
  for (const Tensor& steps : {lag, Tensor(-lag)}) {
    const Tensor powers =
        a.view({-1, 1, 1}).pow(steps.clamp_min(0).to(at::kDouble)) * steps.ge(0).to(at::kDouble);
    const Tensor x = at::einsum("pij,bjp->bip", {powers, v}) * valid;
    directions.push_back(at::stack({at::real(x), at::imag(x)}, 2));
    if (!bidirectional) break;
  }
  return at::stack(directions, 2);
}

TensorFunction states_of(bool bidirectional, const Tensor& mask) {
  return
      [=](const std::vector<Tensor>& in) { return state_scan(in[0], in[1], bidirectional, mask); };
}

std::vector<Tensor> state_inputs(int64_t batch, int64_t length, int64_t states) {
  return {2 * random_tensor({batch, length, 2, states}, 1), 0.65 * random_tensor({2, states}, 2)};
}

TEST(StateScan, IsItsRecurrenceWithItsGradients) {
  for (const int64_t length : {1, 9, 70}) {
    for (const bool bidirectional : {false, true}) {
      for (const Tensor& mask : {Tensor(), first_ones(length)}) {
        SCOPED_TRACE(testing::Message()
                     << "L " << length << " both " << bidirectional << " mask " << mask.defined());
        const auto in = state_inputs(3, length, 5);
        const auto f = states_of(bidirectional, mask);
        const TensorFunction oracle = [&](const auto& x) {
          return dense_states(x, bidirectional, mask);
        };
        expect_agrees(f, at::kFloat, oracle, in, {.value = 2e-6, .gradient = 1e-5});
        expect_agrees_in_bf16(f, oracle, in, 1, {.value = 0x1p-8, .gradient = 0x1p-7});
        if (length < 70) expect_gradient_is_slope(f, in);
      }
    }
  }
}

TEST(StateScan, RefusesOtherShapesAndTypes) {
  const auto in = state_inputs(3, 8, 5);
  EXPECT_THROW(state_scan(in[0].flatten(2), in[1], true), CheckFailure);
  EXPECT_THROW(state_scan(in[0], in[1].narrow(1, 0, 4), true), CheckFailure);
  EXPECT_THROW(state_scan(in[0].to(at::kFloat), in[1], true), CheckFailure);
  EXPECT_THROW(state_scan(in[0], in[1], true, at::ones({3, 7}, at::kByte)), CheckFailure);
}

TEST(StateScan, GivesTheSameBitsAtAnyNumberOfThreads) {
  expect_same_bits_at_any_number_of_threads([] {
    const auto d = differentiate(states_of(true, {}), state_inputs(4, 150, 70), at::kFloat);
    return std::vector<Tensor>{d.value, d.gradients[0], d.gradients[1]};
  });
}

}  // namespace
}  // namespace lra::ops
