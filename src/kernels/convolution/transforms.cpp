#include "kernels/convolution/transforms.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/aligned_buffer.h"
#include "kernels/convolution/transform_task.h"
#include "kernels/example_sums.h"
#include "kernels/flush_denormals.h"

namespace lra::kernels {
namespace {

// A row of plain numbers.
template <typename W>
struct Row {
  using Number = W;

  template <typename F>
  static Row of_each(const F& value) {
    Row row;
    for (int64_t i = 0; i < kFourierLanes; ++i) row.of[i] = value(i);
    return row;
  }
  static Row zero() { return broadcast(0); }
  static Row broadcast(W x) {
    return of_each([x](int64_t) { return x; });
  }
  static Row load(const W* from) { return load_some(from, kFourierLanes); }
  void store(W* to) const { store_some(to, kFourierLanes); }
  template <typename T>
  static Row load_some(const T* from, int64_t count) {
    return of_each([=](int64_t i) { return i < count ? static_cast<W>(from[i]) : W{0}; });
  }
  template <typename T>
  void store_some(T* to, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(of[i]);
  }
  friend Row operator+(const Row& a, const Row& b) {
    return of_each([&](int64_t i) { return a.of[i] + b.of[i]; });
  }
  friend Row operator-(const Row& a, const Row& b) {
    return of_each([&](int64_t i) { return a.of[i] - b.of[i]; });
  }
  friend Row product(const Row& a, const Row& b) {
    return of_each([&](int64_t i) { return a.of[i] * b.of[i]; });
  }
  friend Row multiply_add(const Row& a, const Row& b, const Row& c) {
    return of_each([&](int64_t i) { return a.of[i] * b.of[i] + c.of[i]; });
  }
  friend Row subtract_product(const Row& c, const Row& a, const Row& b) {
    return of_each([&](int64_t i) { return c.of[i] - a.of[i] * b.of[i]; });
  }

  W of[kFourierLanes];
};

template <typename T>
TransformParts<T> choose_transform_parts() {
  LRA_RETURN_BEST(T, Op::kConvolution, transform_parts<T>());
}

// Large enough that no output wraps around.
template <typename T>
int64_t circle_size(const Convolution<T>& p) {
  LRA_CHECK(0 <= p.future && p.future < p.width);
  return fourier_size(std::max(p.width, p.length + std::max(p.future, p.width - 1 - p.future)));
}

template <typename T>
int64_t num_slices(const Convolution<T>& p) {
  return (p.batch + kTransformExamples - 1) / kTransformExamples;
}

// Memory of the current thread, kept between calls.
float* reserve_space(int64_t floats) {
  thread_local AlignedBuffer space;
  return space.reserve(floats);
}

// Calls body(task, number of its slice of the batch, space).
template <typename T, typename Body>
void for_each_task(const Convolution<T>& p, int64_t size, const Body& body) {
  using W = Wide<T>;
  const int64_t blocks = (p.channels + kFourierRow - 1) / kFourierRow;
  parallel_for_each(num_slices(p) * blocks, [&](int64_t n) {
    [[maybe_unused]] const FlushDenormals flush;
    const int64_t slice = n / blocks, begin = slice * kTransformExamples;
    const TransformTask task{n % blocks * kFourierRow, begin,
                             std::min(begin + kTransformExamples, p.batch)};
    constexpr int64_t kFloats = kTransformArrays * sizeof(W) / sizeof(float);
    body(task, slice, reinterpret_cast<W*>(reserve_space(kFloats * size * kFourierRow)));
  });
}

}  // namespace

template <typename T>
TransformParts<T> ref::transform_parts() {
  return TransformOf<Row<Wide<T>>, T>::parts();
}

template <typename T>
void convolve_by_transforms(const Convolution<T>& p) {
  const auto parts = choose_transform_parts<T>();
  const FourierPlan<Wide<T>> plan(circle_size(p));
  const auto tables = plan.tables();
  for_each_task(p, tables.size, [&](const TransformTask& task, int64_t, Wide<T>* space) {
    parts.forward(p, tables, task, {.y = p.y}, space);
  });
}

template <typename T>
void convolution_gradients_by_transforms(const Convolution<T>& p, const T* grad, T* grad_x,
                                         Wide<T>* grad_kernel) {
  using W = Wide<T>;
  const auto parts = choose_transform_parts<T>();
  const FourierPlan<W> plan(circle_size(p));
  const auto tables = plan.tables();
  const int64_t count = grad_kernel == nullptr ? 0 : p.width * p.channels;
  const auto of_slices =
      std::make_unique_for_overwrite<W[]>(static_cast<size_t>(num_slices(p) * count));
  for_each_task(p, tables.size, [&](const TransformTask& task, int64_t slice, W* space) {
    W* const of_slice = grad_kernel == nullptr ? nullptr : of_slices.get() + slice * count;
    parts.backward(p, tables, task, {.grad = grad, .grad_x = grad_x, .grad_kernel = of_slice},
                   space);
  });
  sum_over_examples(of_slices.get(), num_slices(p), count, grad_kernel);
}

template void convolve_by_transforms(const Convolution<float>&);
template void convolve_by_transforms(const Convolution<Bf16>&);
template void convolve_by_transforms(const Convolution<double>&);
template void convolution_gradients_by_transforms(const Convolution<float>&, const float*, float*,
                                                  float*);
template void convolution_gradients_by_transforms(const Convolution<Bf16>&, const Bf16*, Bf16*,
                                                  float*);
template void convolution_gradients_by_transforms(const Convolution<double>&, const double*,
                                                  double*, double*);

}  // namespace lra::kernels
