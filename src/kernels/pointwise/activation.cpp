#include "kernels/pointwise/activation.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"

namespace lra::kernels {
namespace ref {
namespace {

template <typename W>
struct ValueAndSlope {
  W value, slope;
};

template <typename W>
ValueAndSlope<W> at(Activation f, W x) {
  const W open = 1 / (1 + std::exp(-x)), closed = 1 / (1 + std::exp(x));
  switch (f) {
    case Activation::kSigmoid:
      return {open, open * closed};
    case Activation::kClosed:
      return {closed, -open * closed};
    case Activation::kSoftplus:
      return {std::max(x, W{0}) + std::log1p(std::exp(-std::abs(x))), open};
    case Activation::kPositive:
      return x < 0 ? ValueAndSlope<W>{open, open * closed} : ValueAndSlope<W>{x + W{0.5}, W{1}};
    case Activation::kExp:
      return {std::exp(x), std::exp(x)};
    case Activation::kFreshShare: {
      const W fresh = -std::expm1(2 * x), least = kLeastFreshShare;
      const W share = std::sqrt(std::max(fresh, least));
      return {share, fresh > least ? -std::exp(2 * x) / share : 0};
    }
  }
  return {};
}

template <typename T>
void forward(Activation f, int64_t count, const T* x, T* y) {
  for (int64_t n = 0; n < count; ++n) y[n] = at<Wide<T>>(f, x[n]).value;
}

template <typename T>
void backward(Activation f, int64_t count, const T* x, const T* grad, T* grad_x) {
  for (int64_t n = 0; n < count; ++n) {
    grad_x[n] = static_cast<Wide<T>>(grad[n]) * at<Wide<T>>(f, x[n]).slope;
  }
}

}  // namespace

template <typename T>
ActivationParts<T> activation_parts() {
  return {forward<T>, backward<T>};
}
}  // namespace ref

namespace {

constexpr int64_t kGrain = 1 << 14;  // numbers that are worth waking a thread for

template <typename T>
ActivationParts<T> choose_activation_parts() {
  LRA_RETURN_BEST(T, Op::kGate, activation_parts<T>());
}

}  // namespace

template <typename T>
void activation_forward(Activation f, int64_t count, const T* x, T* y) {
  const ActivationParts<T> parts = choose_activation_parts<T>();
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    parts.forward(f, end - begin, x + begin, y + begin);
  });
}

template <typename T>
void activation_backward(Activation f, int64_t count, const T* x, const T* grad, T* grad_x) {
  const ActivationParts<T> parts = choose_activation_parts<T>();
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    parts.backward(f, end - begin, x + begin, grad + begin, grad_x + begin);
  });
}

template void activation_forward(Activation, int64_t, const float*, float*);
template void activation_forward(Activation, int64_t, const Bf16*, Bf16*);
template void activation_forward(Activation, int64_t, const double*, double*);
template void activation_backward(Activation, int64_t, const float*, const float*, float*);
template void activation_backward(Activation, int64_t, const Bf16*, const Bf16*, Bf16*);
template void activation_backward(Activation, int64_t, const double*, const double*, double*);

}  // namespace lra::kernels
