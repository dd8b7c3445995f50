// Calling our own operators through the library's dispatcher, so that one C++ function serves every
// device and Python sees the same operators (torch.ops.lra.*).
//
// Goals of the room `ops`: torch operators with gradients of every order on every device, usable in
// Python without the rest of the program. Non-goals: parameters, operators that LibTorch has and
// computes as fast.
#pragma once

#include <torch/library.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/simd/bf16.h"
#include "ops/libtorch.h"

namespace lra::ops {

// The typed handle of operator `name` ("lra::linear"). Look it up once and keep it.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// A name as an argument of a template.
template <size_t kSize>
struct OpName {
  constexpr OpName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
  char text[kSize] = {};
};

// Calls the operator of this name, looked up at the first call; `kKernel`, a kernel of it, gives
// the signature: dispatch<"lra::linear", linear_on_cpu>(x, weight, bias).
template <OpName kName, auto kKernel, typename... Arguments>
decltype(auto) dispatch(Arguments&&... arguments) {
  static const auto op = find_op<std::remove_pointer_t<decltype(kKernel)>>(kName.text);
  return op.call(std::forward<Arguments>(arguments)...);
}

// Function::apply as a kernel with the signature of another: m.impl(name,
// applies<Function>(kernel)).
template <typename Function, typename Result, typename... Arguments>
auto applies(Result (*)(Arguments...)) {
  return [](Arguments... arguments) -> Result { return Function::apply(arguments...); };
}

inline MaybeTensor optional_tensor(const Tensor& t) {
  return t.defined() ? MaybeTensor(t) : std::nullopt;
}

inline Tensor tensor_or_empty(const MaybeTensor& t) { return t ? *t : Tensor(); }

// Checks a mask of valid positions, uint8 [batch, length].
inline void check_mask(const MaybeTensor& mask, int64_t batch, int64_t length) {
  if (!mask) return;
  LRA_CHECK(mask->scalar_type() == at::kByte && mask->is_contiguous() && mask->dim() == 2);
  LRA_CHECK_EQ(mask->size(0), batch);
  LRA_CHECK_EQ(mask->size(1), length);
}

// The lengths of examples, int32 [batch], in a mask whose ones come first; undefined without one.
// Throws lra::Error for another mask on the CPU; one on a GPU is not read.
Tensor lengths_of(const MaybeTensor& mask);

// The elements of a mask; null without one.
inline const uint8_t* mask_data(const MaybeTensor& mask) {
  return mask ? mask->const_data_ptr<uint8_t>() : nullptr;
}

// The elements of a tensor, whose type must be T; Bf16 is the library's BFloat16.
template <typename T>
const T* const_data(const Tensor& t) {
  if constexpr (std::is_same_v<T, kernels::Bf16>) {
    return reinterpret_cast<const T*>(t.const_data_ptr<at::BFloat16>());
  } else {
    return t.const_data_ptr<T>();
  }
}
template <typename T>
T* mutable_data(const Tensor& t) {
  if constexpr (std::is_same_v<T, kernels::Bf16>) {
    return reinterpret_cast<T*>(t.mutable_data_ptr<at::BFloat16>());
  } else {
    return t.mutable_data_ptr<T>();
  }
}

// Calls f with a value of the tensor's element type: float, Bf16 or double.
template <typename F>
auto with_float_type(const Tensor& t, const char* op, F f) {
  if (t.scalar_type() == at::kFloat) return f(float{});
  if (t.scalar_type() == at::kDouble) return f(double{});
  if (t.scalar_type() == at::kBFloat16) return f(kernels::Bf16{});
  throw CheckFailure(std::string(op) + ": element type " + toString(t.scalar_type()) +
                     " is not supported; use float32, bfloat16 or float64");
}

}  // namespace lra::ops
