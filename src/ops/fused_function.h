// Autograd's side of operators whose passes are fused: what is kept, and the first and further
// gradients.
#pragma once

#include <tuple>

#include "ops/composed.h"

namespace lra::ops {

// The function of an operator with the signature of `kComposed`, its composed version. `Self` has
//
//   kName                     "lra::row_norm"
//   fused(arguments...)       the result, and other tensors to keep for the backward pass
//   gradients(grad, kept, arguments...)  of all arguments that are tensors, but for that number
//                             kMask; what is returned for absent ones is ignored
//
// All arguments are kept. With kOfStream, true if the operator reads a stream that others add to,
// apply() gives the stream, its first argument, as a second result. Then `kept` ends with the
// gradient of that result, perhaps undefined, which gradients() adds to the first one.
template <typename Self, auto kComposed>
class FusedFunction : public torch::autograd::Function<Self> {
 public:
  static constexpr size_t kMask = SIZE_MAX;  // none
  static constexpr bool kOfStream = false;

  template <typename... Arguments>
  static auto forward(AutogradContext* ctx, const Arguments&... arguments) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const variable_list results = listed(Self::fused(arguments...));
    variable_list tensors;
    std::vector<c10::IValue> others;
    const auto keep = [&]<typename T>(const T& argument) {
      if constexpr (kIsTensor<T>) {
        tensors.push_back(tensor_or_empty(argument));
      } else {
        others.emplace_back(argument);
      }
    };
    (keep(arguments), ...);
    tensors.insert(tensors.end(), results.begin() + 1, results.end());
    ctx->save_for_backward(tensors);
    ctx->saved_data["others"] = c10::ivalue::Tuple::create(std::move(others));
    if constexpr (Self::kOfStream) {
      ctx->set_materialize_grads(false);
      return variable_list{results[0], tensors[0]};
    } else {
      return results[0];
    }
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return gradients_by(kComposed, ctx, grads);
  }

 private:
  template <typename T>
  static constexpr bool kIsTensor = std::is_same_v<T, Tensor> || std::is_same_v<T, MaybeTensor>;

  template <typename... Arguments>
  static variable_list gradients_by(Tensor (*composed)(Arguments...), AutogradContext* ctx,
                                    const variable_list& grads) {
    constexpr size_t kTensors = (size_t{kIsTensor<std::decay_t<Arguments>>} + ... + 0);
    const variable_list saved = ctx->get_saved_variables();
    const variable_list tensors(saved.begin(), saved.begin() + kTensors);
    variable_list kept(saved.begin() + kTensors, saved.end());
    if (Self::kOfStream) kept.push_back(grads[1]);
    const auto others = ctx->saved_data["others"].toTupleRef().elements().vec();
    // f(the arguments with these tensors)
    const auto call = [&](const auto& f, const variable_list& in) {
      auto tensor = in.begin();
      auto other = others.begin();
      const auto next = [&]<typename T>(std::type_identity<T>) -> T {
        if constexpr (std::is_same_v<T, Tensor>) {
          return *tensor++;
        } else if constexpr (kIsTensor<T>) {
          return optional_tensor(*tensor++);
        } else {
          return (other++)->template to<T>();
        }
      };
      // Braces are read from left to right.
      return std::apply(f, std::tuple<std::decay_t<Arguments>...>{
                               next(std::type_identity<std::decay_t<Arguments>>())...});
    };
    variable_list of_tensors;
    if (at::GradMode::is_enabled()) {
      const auto y = [&](const auto& in) { return variable_list{call(composed, in), in[0]}; };
      of_tensors = composed_gradients(Self::kName, y, tensors, grads, kTensors);
    } else if (Self::kOfStream && !grads[0].defined()) {
      of_tensors.resize(kTensors);
      of_tensors[0] = grads[1];
    } else {
      of_tensors =
          call([&](const auto&... in) { return listed(Self::gradients(grads[0], kept, in...)); },
               tensors);
      if (Self::kMask < kTensors) of_tensors.insert(of_tensors.begin() + Self::kMask, Tensor());
    }
    variable_list all;
    size_t n = 0;
    const auto add = [&](bool is_tensor) {
      all.push_back(is_tensor && tensors[n].defined() ? of_tensors[n] : Tensor());
      n += is_tensor;
    };
    (add(kIsTensor<std::decay_t<Arguments>>), ...);
    return all;
  }

  static variable_list listed(const variable_list& all) { return all; }
  static variable_list listed(const Tensor& t) { return {t}; }
  template <typename... Tensors>
  static variable_list listed(const std::tuple<Tensors...>& all) {
    return std::apply([](const auto&... t) { return variable_list{t...}; }, all);
  }
};

// The same where the first gradient is an operator that takes the gradient of the result and then
// the same arguments, of which kernels give the signatures:
//
//   struct GateFunction : FusedOperator<GateFunction, "lra::gate", composed_gate,
//                                       "lra::gate_backward", composed_gate_backward> {};
template <typename Self, OpName kOp, auto kComposed, OpName kBackwardOp, auto kBackward,
          size_t kMaskPlace = SIZE_MAX>
struct FusedOperator : FusedFunction<Self, kComposed> {
  static constexpr const char* kName = kOp.text;
  static constexpr size_t kMask = kMaskPlace;

  template <typename... Arguments>
  static auto fused(const Arguments&... arguments) {
    return dispatch<kOp, kComposed>(arguments...);
  }
  template <typename... Arguments>
  static auto gradients(const Tensor& grad, const variable_list&, const Arguments&... arguments) {
    return dispatch<kBackwardOp, kBackward>(grad, arguments...);
  }
};

}  // namespace lra::ops
