// Listening to the operators that a computation calls.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string_view>

namespace lra::analysis {

using OperatorInputs = c10::ArrayRef<const c10::IValue>;

// Runs `compute` without gradients and tells `hear` the name ("lra::linear") and inputs of every
// operator that it calls in this thread.
void listen_to_operators(const std::function<void()>& compute,
                         const std::function<void(std::string_view, OperatorInputs)>& hear);

}  // namespace lra::analysis
