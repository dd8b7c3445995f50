// Diagonal recurrences on a device: convolutions with the kernels k[l] = Re sum_n c_n a_n^l that
// they amount to, by the library's transforms; thousands of positions one after another took
// longer, even with two modes. The gradients of a and c are correlations.
#include "ops/scan/diagonal_scan.h"

#include <algorithm>

#include "kernels/convolution/fourier.h"
#include "ops/cuda/device.h"
#include "ops/scan/diagonal_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

// The problem on a circle that holds every lag of either direction, some channels at a time.
// Planning a transform takes milliseconds, and batches have many lengths: their circles have few
// sizes.
template <typename T>
class Circle {
 public:
  Circle(const DiagonalScanArguments& in, cuda::Stream stream)
      : problem_(in.problem<T>()),
        parameters_{problem_.channels,   problem_.modes, problem_.planes,
                    problem_.directions, problem_.a,     problem_.c},
        size_(kernels::fourier_size(2 * problem_.length)),
        floats_(in.a.options()),
        stream_(stream) {
    const Tensor kernels = at::empty({problem_.channels, size_}, floats_);
    cuda::scan_tables(parameters_, problem_.length, size_, kernels.mutable_data_ptr<float>(),
                      stream_);
    kernels_ = at::fft_rfft(kernels);
  }

  void forward(T* y) const {
    for_each_chunk([&](const cuda::ScanChannels& of) {
      write_positions(problem_, of, spectra(problem_, of).mul_(kernels_of(of)), y);
    });
  }

  // Returns the gradients of a, c and skip, one after another.
  Tensor backward(const T* grad, T* grad_x) const {
    auto of_grad = problem_;
    of_grad.x = grad;
    const Tensor lags = at::empty_like(kernels_);
    for_each_chunk([&](const cuda::ScanChannels& of) {
      const Tensor x = spectra(problem_, of), grads = spectra(of_grad, of);
      cuda::scan_correlations(problem_.batch, x.numel() / problem_.batch, floats(x),
                              floats(kernels_of(of)), floats(grads),
                              floats(lags.narrow(0, of.first, of.count)), stream_);
      write_positions(of_grad, of, grads, grad_x);
    });
    const Tensor gradients = at::empty({kernels::scan_parameters(problem_)}, floats_);
    cuda::scan_gradients(parameters_, problem_.length, size_,
                         at::fft_irfft(lags, size_).template const_data_ptr<float>(),
                         gradients.mutable_data_ptr<float>(), stream_);
    return gradients;
  }

 private:
  template <typename F>
  void for_each_chunk(F use) const {
    constexpr int64_t kMostNumbers = int64_t{1} << 25;  // of a spectrum
    const int64_t channels = problem_.channels, numbers = problem_.batch * channels * size_;
    // Chunks of one size, a channel too large at most: a last one of few channels takes as many
    // launches.
    const int64_t chunks = std::min(channels, (numbers + kMostNumbers - 1) / kMostNumbers);
    const int64_t chunk = (channels + chunks - 1) / chunks;
    for (int64_t first = 0; first < channels; first += chunk) {
      use(cuda::ScanChannels{first, std::min(chunk, channels - first), size_});
    }
  }
  Tensor kernels_of(const cuda::ScanChannels& of) const {
    return kernels_.narrow(0, of.first, of.count);
  }
  static float* floats(const Tensor& complex) {
    return reinterpret_cast<float*>(complex.mutable_data_ptr<c10::complex<float>>());
  }
  // complex64 [B, count, size / 2 + 1]
  Tensor spectra(const kernels::DiagonalScan<T>& p, const cuda::ScanChannels& of) const {
    const Tensor rows = at::empty({p.batch, of.count, size_}, floats_);
    cuda::scan_rows(p, of, rows.mutable_data_ptr<float>(), stream_);
    return at::fft_rfft(rows);
  }
  void write_positions(const kernels::DiagonalScan<T>& p, const cuda::ScanChannels& of,
                       const Tensor& spectra_of_y, T* y) const {
    cuda::scan_positions(p, of, at::fft_irfft(spectra_of_y, size_).template const_data_ptr<float>(),
                         y, stream_);
  }

  kernels::DiagonalScan<T> problem_;
  cuda::ScanParameters parameters_;
  int64_t size_;
  at::TensorOptions floats_;
  cuda::Stream stream_;
  Tensor kernels_;  // complex64 [D, size / 2 + 1]
};

Tensor forward(const Tensor& x, const Tensor& a, const Tensor& c, const MaybeTensor& skip,
               const MaybeTensor& mask) {
  const OnDeviceOf device(x, {a, c, skip, mask});
  const DiagonalScanArguments in(x, a, c, skip, mask);
  const Tensor y = at::empty_like(in.x);
  with_device_type(x, "lra::diagonal_scan", [&]<typename T>(T) {
    if (x.numel() > 0) Circle<T>(in, device.stream()).forward(mutable_data<T>(y));
  });
  return y;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad_in, const Tensor& x,
                                                    const Tensor& a, const Tensor& c,
                                                    const MaybeTensor& skip,
                                                    const MaybeTensor& mask) {
  LRA_CHECK_EQ(grad_in.sizes(), x.sizes());
  const OnDeviceOf device(x, {grad_in, a, c, skip, mask});
  const DiagonalScanArguments in(x, a, c, skip, mask);
  const Tensor grad = grad_in.contiguous(), grad_x = at::empty_like(in.x);
  Tensor gradients;
  with_device_type(x, "lra::diagonal_scan", [&]<typename T>(T) {
    gradients =
        x.numel() == 0
            ? at::zeros({a.numel() + c.numel() + x.size(2)}, a.options())
            : Circle<T>(in, device.stream()).backward(const_data<T>(grad), mutable_data<T>(grad_x));
  });
  const auto parts = gradients.split_with_sizes({a.numel(), c.numel(), x.size(2)});
  return {grad_x, parts[0].view(a.sizes()), parts[1].view(c.sizes()), parts[2]};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("diagonal_scan", forward);
  m.impl("diagonal_scan_backward", backward);
}

}  // namespace lra::ops::device
