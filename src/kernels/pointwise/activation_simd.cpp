#include "kernels/pointwise/activation.h"
#include "kernels/simd/sigmoid.h"

namespace lra::kernels::LRA_ISA {
namespace {

// f(x) and f'(x).
struct ValueAndSlope {
  Floats value, slope;
};

// As a square, which becomes infinity where exp(x) does.
[[gnu::always_inline]] inline Floats exp_of(Floats x) {
  const Floats half = x * broadcast(std::numbers::log2e_v<float> / 2);
  const Floats root = exp2(min(broadcast(127.0f), half));
  return root * root;
}

// 1 - exp(y) for y <= 0: near 0 by its series, whose tenth term is below 1e-9 of it.
[[gnu::always_inline]] inline Floats minus_expm1(Floats y) {
  const Floats one = broadcast(1.0f);
  Floats series = one;
  for (const float n : {9.0f, 8.0f, 7.0f, 6.0f, 5.0f, 4.0f, 3.0f, 2.0f}) {
    series = multiply_add(series * y, broadcast(1 / n), one);
  }
  return select(greater(y, broadcast(-0.5f)), zeros() - y * series, one - exp_of(y));
}

[[gnu::always_inline]] inline ValueAndSlope fresh_share(Floats x) {
  const Floats fresh = minus_expm1(x + x), least = broadcast(float{kLeastFreshShare});
  const Floats share = sqrt(max(least, fresh));
  const Floats slope = zeros() - exp_of(x + x) / share;
  return {share, select(greater(fresh, least), slope, zeros())};
}

template <Activation kF>
[[gnu::always_inline]] inline ValueAndSlope at(Floats x) {
  if constexpr (kF == Activation::kSoftplus) {
    const Softplus softplus(x);
    return {softplus.value, softplus.slope};
  } else if constexpr (kF == Activation::kExp) {
    const Floats power = exp_of(x);
    return {power, power};
  } else if constexpr (kF == Activation::kFreshShare) {
    return fresh_share(x);
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
    case kExp:
      return use(std::integral_constant<Activation, kExp>());
    case kFreshShare:
      return use(std::integral_constant<Activation, kFreshShare>());
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
