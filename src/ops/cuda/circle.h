// Convolutions along the sequence on a device, by the library's transforms.
#pragma once

#include <algorithm>

#include "kernels/convolution/fourier.h"
#include "kernels/scan/diagonal_scan.h"
#include "ops/cuda/device.h"

namespace lra::ops::device {

// The x of a scan, convolved with kernels [D, size], float32, `by_lag`: number l of a channel is
// that of lag l modulo `size`, a kernels::fourier_size that keeps lags apart. Planning a transform
// takes milliseconds, and batches have many lengths: their circles have few sizes. `valid` [B, L]
// takes the place of the scan's lengths, unless it is null. Memory for some channels at a time.
template <typename T>
class Circle {
 public:
  Circle(const kernels::DiagonalScan<T>& problem, const Tensor& by_lag, const uint8_t* valid,
         kernels::cuda::Stream stream)
      : problem_(problem),
        size_(by_lag.size(1)),
        valid_(valid),
        stream_(stream),
        floats_(by_lag.options()),
        kernels_(at::fft_rfft(by_lag)) {}

  void forward(T* y) const {
    for_each_chunk([&](const Channels& of) {
      write_positions(problem_, of, spectra(problem_, of).mul_(kernels_of(of)), y);
    });
  }

  // Returns the sums over examples and positions of grad[t + lag] x[t], as the kernels lie.
  Tensor backward(const T* grad, T* grad_x) const {
    auto of_grad = problem_;
    of_grad.x = grad;
    const Tensor lags = at::empty_like(kernels_);
    for_each_chunk([&](const Channels& of) {
      const Tensor x = spectra(problem_, of), grads = spectra(of_grad, of);
      kernels::cuda::scan_correlations(problem_.batch, x.numel() / problem_.batch, floats(x),
                                       floats(kernels_of(of)), floats(grads),
                                       floats(lags.narrow(0, of.first, of.count)), stream_);
      write_positions(of_grad, of, grads, grad_x);
    });
    return at::fft_irfft(lags, size_);
  }

 private:
  using Channels = kernels::cuda::ScanChannels;

  template <typename F>
  void for_each_chunk(F use) const {
    constexpr int64_t kMostNumbers = int64_t{1} << 25;  // of a spectrum
    const int64_t channels = problem_.channels;
    const int64_t most = std::clamp<int64_t>(
        kMostNumbers / std::max<int64_t>(1, problem_.batch * size_), 1, channels);
    // Even chunks: their transforms are planned once.
    const int64_t chunks = (channels + most - 1) / most, chunk = (channels + chunks - 1) / chunks;
    for (int64_t first = 0; first < channels; first += chunk) {
      use(Channels{first, std::min(chunk, channels - first), size_, valid_});
    }
  }
  Tensor kernels_of(const Channels& of) const { return kernels_.narrow(0, of.first, of.count); }
  static float* floats(const Tensor& complex) {
    return reinterpret_cast<float*>(complex.mutable_data_ptr<c10::complex<float>>());
  }
  // complex64 [B, count, size / 2 + 1]
  Tensor spectra(const kernels::DiagonalScan<T>& p, const Channels& of) const {
    const Tensor rows = at::empty({p.batch, of.count, size_}, floats_);
    kernels::cuda::scan_rows(p, of, rows.mutable_data_ptr<float>(), stream_);
    return at::fft_rfft(rows);
  }
  void write_positions(const kernels::DiagonalScan<T>& p, const Channels& of,
                       const Tensor& spectra_of_y, T* y) const {
    const Tensor rows = at::fft_irfft(spectra_of_y, size_);
    kernels::cuda::scan_positions(p, of, rows.const_data_ptr<float>(), y, stream_);
  }

  kernels::DiagonalScan<T> problem_;
  int64_t size_;
  const uint8_t* valid_;
  kernels::cuda::Stream stream_;
  at::TensorOptions floats_;
  Tensor kernels_;  // complex64 [D, size / 2 + 1]
};

}  // namespace lra::ops::device
