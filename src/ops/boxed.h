// Operators whose arguments are one struct: the dispatcher carries them as a list of values, which
// the struct's own functions create and read.
#pragma once

#include <utility>
#include <vector>

#include "ops/dispatch.h"

namespace lra::ops {

using Stack = torch::jit::Stack;
using Values = c10::ArrayRef<c10::IValue>;

inline Tensor tensor_or_undefined(const c10::IValue& value) {
  return value.isNone() ? Tensor() : value.toTensor();
}

// A kernel that takes all values of an operator and gives its results: m.impl(name,
// boxed<function>()).
template <Stack (*kFunction)(Values)>
void call_boxed(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const Stack values(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  for (c10::IValue& result : kFunction(values)) stack->push_back(std::move(result));
}
template <Stack (*kFunction)(Values)>
torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<&call_boxed<kFunction>>();
}

// Calls an operator with all its values; the results.
inline Stack call_op(const c10::OperatorHandle& op, Stack values) {
  op.callBoxed(&values);
  return values;
}
inline c10::OperatorHandle find_boxed_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

}  // namespace lra::ops
