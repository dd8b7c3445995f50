// All channels of a position at a time: the few rows that it reads are in the first-level cache.
#include "kernels/aligned_buffer.h"
#include "kernels/convolution/short_convolution.h"
#include "kernels/simd/sigmoid.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Rows of zeros, and in the backward pass the gradients of SiLU's arguments at the last `width`
// positions, of one task, of which a thread has one at a time.
struct Scratch {
  Scratch(int64_t channels, int64_t rows) {
    thread_local AlignedBuffer space;
    zeros = space.reserve((rows + 1) * channels);
    std::fill_n(zeros, (rows + 1) * channels, 0.0f);
    grads = zeros + channels;
  }
  float *zeros, *grads;
};

template <typename T>
const T* zero_row(const Scratch& s) {
  return reinterpret_cast<const T*>(s.zeros);
}

// The argument of SiLU of sixteen channels.
template <typename T, typename L>
[[gnu::always_inline]] inline Floats local(const ShortConvolution<T>& p, const ShortRows<T>& rows,
                                           int64_t c, L lanes) {
  Floats sum = load_lanes(lanes, p.bias + c);
  for (int64_t j = 0; j < p.width; ++j) {
    sum = multiply_add(load_lanes(lanes, p.kernel + j * p.channels + c),
                       load_lanes(lanes, rows.of[j] + c), sum);
  }
  return sum;
}

template <typename T>
void forward(const ShortConvolution<T>& p, int64_t example, int64_t begin, int64_t end, T* y) {
  const Scratch s(p.channels, 0);
  for (int64_t t = begin; t < end; ++t) {
    T* const to = y + (example * p.length + t) * p.channels;
    if (!ShortRows<T>::is_valid(p, example, t)) {
      std::fill_n(to, p.channels, T(0.0f));
      continue;
    }
    const ShortRows<T> rows(p, example, t, zero_row<T>(s));
    for_each_run(p.channels, [&](int64_t c, auto lanes) {
      const Floats u = local(p, rows, c, lanes);
      store_lanes(to + c, lanes, u * Sigmoid(u).open);
    });
  }
}

// The gradient of SiLU's argument at position t, to `to`; with `shares`, adds those of the
// parameters.
template <typename T>
void add_position(const ShortConvolution<T>& p, const ShortRows<T>& rows, const T* grad, float* to,
                  float* shares) {
  for_each_run(p.channels, [&](int64_t c, auto lanes) {
    const Floats u = local(p, rows, c, lanes);
    const Sigmoid sigmoid(u);
    const Floats slope = sigmoid.open * multiply_add(u, sigmoid.closed, broadcast(1.0f));
    const Floats g = load_lanes(lanes, grad + c) * slope;
    store_lanes(to + c, lanes, g);
    if (shares == nullptr) return;
    for (int64_t j = 0; j < p.width; ++j) {
      float* const share = shares + j * p.channels + c;
      store_lanes(share, lanes,
                  multiply_add(g, load_lanes(lanes, rows.of[j] + c), load_lanes(lanes, share)));
    }
    float* const share = shares + p.width * p.channels + c;
    store_lanes(share, lanes, load_lanes(lanes, share) + g);
  });
}

template <typename T>
void backward(const ShortConvolution<T>& p, int64_t example, int64_t begin, int64_t end,
              const T* grad, T* grad_x, float* shares) {
  const Scratch s(p.channels, p.width);
  const int64_t first = begin - p.future;
  const auto kept = [&](int64_t t) { return s.grads + (t - first) % p.width * p.channels; };
  for (int64_t t = first; t < end - p.future + p.width - 1; ++t) {
    if (ShortRows<T>::is_valid(p, example, t)) {
      add_position(p, ShortRows<T>(p, example, t, zero_row<T>(s)),
                   grad + (example * p.length + t) * p.channels, kept(t),
                   begin <= t && t < end ? shares : nullptr);
    } else {
      std::fill_n(kept(t), p.channels, 0.0f);
    }
    // The last position that reads x[at] was t.
    const int64_t at = t + p.future - p.width + 1;
    if (at < begin) continue;
    T* const to = grad_x + (example * p.length + at) * p.channels;
    if (!ShortRows<T>::is_valid(p, example, at)) {
      std::fill_n(to, p.channels, T(0.0f));
      continue;
    }
    for_each_run(p.channels, [&](int64_t c, auto lanes) {
      Floats sum = zeros();
      for (int64_t j = 0; j < p.width; ++j) {
        sum = multiply_add(load_lanes(lanes, p.kernel + j * p.channels + c),
                           load_lanes(lanes, kept(at - p.future + j) + c), sum);
      }
      store_lanes(to + c, lanes, sum);
    });
  }
}

}  // namespace

template <typename T>
ShortConvolutionParts<T> short_convolution_parts() {
  return {forward<T>, backward<T>};
}
template ShortConvolutionParts<float> short_convolution_parts();
template ShortConvolutionParts<Bf16> short_convolution_parts();

}  // namespace lra::kernels::LRA_ISA
