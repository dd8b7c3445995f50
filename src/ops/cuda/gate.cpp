// Gated linear units on a device, composed of the library's operators.
#include "ops/gate.h"

#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

std::tuple<Tensor, Tensor> halves(const Tensor& value, const MaybeTensor& gate) {
  check_gate(value, gate);
  if (gate) return {value, *gate};
  const auto parts = value.chunk(2, -1);
  return {parts[0], parts[1]};
}

Tensor gate_forward(const Tensor& value_in, const MaybeTensor& gate_in) {
  const auto [value, gate] = halves(value_in, gate_in);
  return value * gate.sigmoid();
}

std::tuple<Tensor, Tensor> gate_backward(const Tensor& grad, const Tensor& value_in,
                                         const MaybeTensor& gate_in) {
  const auto [value, gate] = halves(value_in, gate_in);
  const Tensor open = gate.sigmoid();
  const Tensor of_value = grad * open, of_gate = of_value * value * (1 - open);
  if (gate_in) return {of_value, of_gate};
  return {at::cat({of_value, of_gate}, -1), at::empty({0}, grad.options())};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("gate", gate_forward);
  m.impl("gate_backward", gate_backward);
}

}  // namespace lra::ops::device
