#include "kernels/convolution/convolution.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"

namespace lra::kernels {
namespace {

template <typename W>
using Panel = std::vector<PanelRow<W>>;

// Lags of the kernel whose gradient is one task.
constexpr int64_t kTaskLags = 64;

int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }
int64_t padded(int64_t rows) { return parts_of(rows, kPanelRows) * kPanelRows; }

void run_convolve(int64_t rows, int64_t width, const PanelRow<float>* x,
                  const PanelRow<float>* kernel, PanelRow<float>* y) {
  LRA_RETURN_CALL(choose(Op::kConvolution), convolve_panel(rows, width, x, kernel, y));
}
void run_convolve(int64_t rows, int64_t width, const PanelRow<double>* x,
                  const PanelRow<double>* kernel, PanelRow<double>* y) {
  ref::convolve_panel(rows, width, x, kernel, y);
}
void run_correlate(int64_t rows, int64_t width, const PanelRow<float>* x,
                   const PanelRow<float>* grad, PanelRow<float>* sums) {
  LRA_RETURN_CALL(choose(Op::kConvolution), correlate_panel(rows, width, x, grad, sums));
}
void run_correlate(int64_t rows, int64_t width, const PanelRow<double>* x,
                   const PanelRow<double>* grad, PanelRow<double>* sums) {
  ref::correlate_panel(rows, width, x, grad, sums);
}

// Sixteen channels of one sequence.
struct Slice {
  int64_t item, first_channel;
};

// Rows of `from` [length, channels] from position `begin` on: zeros outside of the sequence, where
// it is not valid and beyond the last channel.
template <typename T>
void pack(const Convolution<T>& p, const T* from, const Slice& slice, int64_t begin,
          Panel<Wide<T>>& panel) {
  const int64_t count = std::min(kPanelChannels, p.channels - slice.first_channel);
  const auto rows = static_cast<int64_t>(panel.size());
  for (int64_t r = 0; r < rows; ++r) {
    auto& row = panel[static_cast<size_t>(r)].of;
    const int64_t t = begin + r, at = slice.item * p.length + t;
    const bool is_there = t >= 0 && t < p.length && (p.valid == nullptr || p.valid[at] != 0);
    const T* values = is_there ? from + at * p.channels + slice.first_channel : nullptr;
    if (is_there && count == kPanelChannels) {
      std::copy_n(values, kPanelChannels, row);
    } else {
      for (int64_t c = 0; c < kPanelChannels; ++c) {
        row[c] = is_there && c < count ? static_cast<Wide<T>>(values[c]) : Wide<T>{0};
      }
    }
  }
}

template <typename T>
void unpack(const Convolution<T>& p, const Slice& slice, const Panel<Wide<T>>& panel) {
  const int64_t count = std::min(kPanelChannels, p.channels - slice.first_channel);
  for (int64_t t = 0; t < p.length; ++t) {
    const int64_t at = slice.item * p.length + t;
    T* y = p.y + at * p.channels + slice.first_channel;
    if (p.valid == nullptr || p.valid[at] != 0) {
      std::copy_n(panel[static_cast<size_t>(t)].of, count, y);
    } else {
      std::fill_n(y, count, T(0));
    }
  }
}

}  // namespace

template <typename T>
void convolve(const Convolution<T>& p) {
  using W = Wide<T>;
  const int64_t rows = padded(p.length), width = padded(p.width);
  const int64_t panels = parts_of(p.channels, kPanelChannels);
  const Convolution<W> weights{.batch = 1, .length = p.width, .channels = p.channels};
  parallel_for_each(p.batch * panels, [&](int64_t task) {
    const Slice slice{task / panels, task % panels * kPanelChannels};
    Panel<W> x(static_cast<size_t>(rows + width - 1)), kernel(static_cast<size_t>(width)),
        y(static_cast<size_t>(rows));
    pack(p, p.x, slice, p.future - (width - 1), x);
    pack(weights, p.kernel, {0, slice.first_channel}, 0, kernel);
    run_convolve(rows, width, x.data(), kernel.data(), y.data());
    unpack(p, slice, y);
  });
}

template <typename T>
void convolution_kernel_gradient(const Convolution<T>& p, const T* grad, Wide<T>* grad_kernel) {
  using W = Wide<T>;
  const int64_t rows = padded(p.length), panels = parts_of(p.channels, kPanelChannels);
  parallel_for_each(panels * parts_of(p.width, kTaskLags), [&](int64_t task) {
    const int64_t channel = task % panels * kPanelChannels, lag = task / panels * kTaskLags;
    const int64_t width = padded(std::min(kTaskLags, p.width - lag));
    Panel<W> x(static_cast<size_t>(rows + width - 1)), of_y(static_cast<size_t>(rows)),
        sums(static_cast<size_t>(width));
    for (int64_t item = 0; item < p.batch; ++item) {
      pack(p, p.x, {item, channel}, p.future - lag - (width - 1), x);
      pack(p, grad, {item, channel}, 0, of_y);
      for (int64_t t = 0; t < rows; t += kConvolutionRows) {
        run_correlate(std::min(kConvolutionRows, rows - t), width, x.data() + t, of_y.data() + t,
                      sums.data());
      }
    }
    const int64_t count = std::min(kPanelChannels, p.channels - channel);
    for (int64_t j = 0; j < width && lag + j < p.width; ++j) {
      std::copy_n(sums[static_cast<size_t>(j)].of, count,
                  grad_kernel + (lag + j) * p.channels + channel);
    }
  });
}

template <typename W>
void ref::convolve_panel(int64_t rows, int64_t width, const PanelRow<W>* x,
                         const PanelRow<W>* kernel, PanelRow<W>* y) {
  for (int64_t t = 0; t < rows; ++t) {
    PanelRow<W> sum{};
    for (int64_t j = 0; j < width; ++j) {
      const auto &value = x[t + width - 1 - j].of, &weight = kernel[j].of;
      for (int64_t c = 0; c < kPanelChannels; ++c) sum.of[c] += weight[c] * value[c];
    }
    y[t] = sum;
  }
}

template <typename W>
void ref::correlate_panel(int64_t rows, int64_t width, const PanelRow<W>* x,
                          const PanelRow<W>* grad, PanelRow<W>* sums) {
  for (int64_t j = 0; j < width; ++j) {
    PanelRow<W> sum{};
    for (int64_t t = 0; t < rows; ++t) {
      const auto &value = x[t + width - 1 - j].of, &weight = grad[t].of;
      for (int64_t c = 0; c < kPanelChannels; ++c) sum.of[c] += weight[c] * value[c];
    }
    for (int64_t c = 0; c < kPanelChannels; ++c) sums[j].of[c] += sum.of[c];
  }
}

template void convolve(const Convolution<float>&);
template void convolve(const Convolution<Bf16>&);
template void convolve(const Convolution<double>&);
template void convolution_kernel_gradient(const Convolution<float>&, const float*, float*);
template void convolution_kernel_gradient(const Convolution<Bf16>&, const Bf16*, float*);
template void convolution_kernel_gradient(const Convolution<double>&, const double*, double*);

}  // namespace lra::kernels
