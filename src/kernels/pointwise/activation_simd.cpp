#include "kernels/pointwise/activation.h"
#include "kernels/simd/sigmoid.h"

namespace lra::kernels::LRA_ISA {
namespace {

// f(x) and f'(x).
struct ValueAndSlope {
  Floats value, slope;
};

template <Activation kF>
[[gnu::always_inline]] inline ValueAndSlope at(Floats x) {
  if constexpr (kF == Activation::kSoftplus) {
    const Softplus softplus(x);
    return {softplus.value, softplus.slope};
  } else {
    const Sigmoid sigmoid(x);
    const Floats slope = sigmoid.open * sigmoid.closed;
    if constexpr (kF == Activation::kSigmoid) return {sigmoid.open, slope};
    if constexpr (kF == Activation::kClosed) return {sigmoid.closed, zeros() - slope};
    const Lanes is_negative = greater(zeros(), x);
    return {select(is_negative, sigmoid.open, x + broadcast(0.5f)),
            select(is_negative, slope, broadcast(1.0f))};
  }
}

template <Activation kF, typename T>
void forward_of(int64_t count, const T* x, T* y) {
  for_each_run(count, [&](int64_t n, auto lanes) {
    store_lanes(y + n, lanes, at<kF>(load_lanes(lanes, x + n)).value);
  });
}

template <Activation kF, typename T>
void backward_of(int64_t count, const T* x, const T* grad, T* grad_x) {
  for_each_run(count, [&](int64_t n, auto lanes) {
    const Floats slope = at<kF>(load_lanes(lanes, x + n)).slope;
    store_lanes(grad_x + n, lanes, load_lanes(lanes, grad + n) * slope);
  });
}

// use(std::integral_constant<Activation, f>())
template <typename F>
void with_activation(Activation f, const F& use) {
  using enum Activation;
  switch (f) {
    case kSigmoid:
      return use(std::integral_constant<Activation, kSigmoid>());
    case kClosed:
      return use(std::integral_constant<Activation, kClosed>());
    case kSoftplus:
      return use(std::integral_constant<Activation, kSoftplus>());
    case kPositive:
      return use(std::integral_constant<Activation, kPositive>());
  }
}

template <typename T>
void forward(Activation f, int64_t count, const T* x, T* y) {
  with_activation(f, [&](auto kind) { forward_of<kind()>(count, x, y); });
}

template <typename T>
void backward(Activation f, int64_t count, const T* x, const T* grad, T* grad_x) {
  with_activation(f, [&](auto kind) { backward_of<kind()>(count, x, grad, grad_x); });
}

}  // namespace

template <typename T>
ActivationParts<T> activation_parts() {
  return {forward<T>, backward<T>};
}
template ActivationParts<float> activation_parts();
template ActivationParts<Bf16> activation_parts();

}  // namespace lra::kernels::LRA_ISA
