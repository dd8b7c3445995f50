// Calling our own operators through the library's dispatcher, so that one C++ function serves every
// device and Python sees the same operators (torch.ops.lra.*).
#pragma once

#include <torch/library.h>
#include <torch/torch.h>

#include "base/error.h"

namespace lra::ops {

// The typed handle of operator `name` ("lra::linear"). Look it up once and keep it.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

inline std::optional<at::Tensor> optional_tensor(const at::Tensor& t) {
  return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
}

inline at::Tensor tensor_or_empty(const std::optional<at::Tensor>& t) {
  return t ? *t : at::Tensor();
}

// Calls f with a value of the tensor's element type: float or double.
template <typename F>
auto with_float_type(const at::Tensor& t, const char* op, F f) {
  if (t.scalar_type() == at::kFloat) return f(float{});
  if (t.scalar_type() == at::kDouble) return f(double{});
  throw CheckFailure(std::string(op) + ": element type " + toString(t.scalar_type()) +
                     " is not supported; use float32 or float64");
}

}  // namespace lra::ops
