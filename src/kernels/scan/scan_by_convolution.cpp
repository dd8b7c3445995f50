#include "kernels/scan/scan_by_convolution.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/convolution/transforms.h"

namespace lra::kernels {
namespace {

// Longer circles leave the cache: at 16,384 positions and 32 modes both ways take the same time.
constexpr int64_t kMaxLength = 4096;

// The convolution that a scan is: its kernel has the lags -(length - 1) to length - 1, without a
// second direction those from 0 on.
template <typename T>
class ScanKernel {
 public:
  using W = Wide<T>;

  explicit ScanKernel(const DiagonalScan<T>& p)
      : scan_(p),
        future_(p.directions == 2 ? p.length - 1 : 0),
        width_(future_ + p.length),
        impulse_(count()),
        kernel_(count()) {
    std::fill_n(impulse_.begin() + future_ * p.channels, p.channels, W{1});
    recurrence_forward(response(), kernel_.data());
    for (int64_t b = 0; p.lengths != nullptr && b < p.batch; ++b) {
      valid_.insert(valid_.end(), static_cast<size_t>(p.lengths[b]), 1);
      valid_.resize(static_cast<size_t>((b + 1) * p.length));
    }
  }

  void convolve(T* y) const {
    Convolution<T> problem = convolution();
    problem.y = y;
    convolve_by_transforms(problem);
  }
  void convolve_back(const T* grad, T* grad_x, W* grad_parameters) const {
    std::vector<W> of_kernel(count()), of_impulse(count());
    convolution_gradients_by_transforms(convolution(), grad, grad_x, of_kernel.data());
    recurrence_backward<W>({response(), of_kernel.data(), of_impulse.data(), grad_parameters});
  }

 private:
  size_t count() const { return static_cast<size_t>(width_ * scan_.channels); }

  Convolution<T> convolution() const {
    return {.batch = scan_.batch,
            .length = scan_.length,
            .channels = scan_.channels,
            .width = width_,
            .future = future_,
            .x = scan_.x,
            .valid = valid_.empty() ? nullptr : valid_.data(),
            .kernel = kernel_.data()};
  }
  // The scan of an impulse at place future_, whose result is the kernel.
  DiagonalScan<W> response() const {
    return {.batch = 1,
            .length = width_,
            .channels = scan_.channels,
            .modes = scan_.modes,
            .planes = scan_.planes,
            .directions = scan_.directions,
            .x = impulse_.data(),
            .a = scan_.a,
            .c = scan_.c,
            .skip = scan_.skip};
  }

  const DiagonalScan<T>& scan_;
  const int64_t future_, width_;
  std::vector<W> impulse_, kernel_;  // [width_, channels]
  std::vector<uint8_t> valid_;
};

}  // namespace

// In units of a mode's number in a direction and position, forward and backward, 0.22 ns of a
// thread on a Xeon of family 6, model 167; transforms take 2.6 of them for each place and pass, 32
// channels at a time. The kernel costs as much as the recurrence of 2.4 examples. float64 always
// uses the recurrence, the reference of the tests.
template <typename T>
bool is_faster_by_convolution(const DiagonalScan<T>& p) {
  if (std::is_same_v<T, double> || p.length > kMaxLength) return false;
  const auto length = static_cast<double>(p.length), batch = static_cast<double>(p.batch);
  const double size = static_cast<double>(fourier_size(2 * p.length));
  const double recurrence = static_cast<double>(p.directions * p.planes * p.modes);
  const auto rounded = [&](int64_t n) { return static_cast<double>((p.channels + n - 1) / n * n); };
  const double transforms =
      2.6 * size / length * std::log2(size) * rounded(kFourierRow) / rounded(kScanChannels);
  return recurrence * (1 - 2.4 / batch) > transforms;
}

template <typename T>
void scan_forward_by_convolution(const DiagonalScan<T>& p, T* y) {
  ScanKernel<T>(p).convolve(y);
}

template <typename T>
void scan_backward_by_convolution(const DiagonalScanBackward<T>& p) {
  ScanKernel<T>(p.problem).convolve_back(p.grad, p.grad_x, p.grad_parameters);
}

template bool is_faster_by_convolution(const DiagonalScan<float>&);
template bool is_faster_by_convolution(const DiagonalScan<Bf16>&);
template bool is_faster_by_convolution(const DiagonalScan<double>&);
template void scan_forward_by_convolution(const DiagonalScan<float>&, float*);
template void scan_forward_by_convolution(const DiagonalScan<Bf16>&, Bf16*);
template void scan_forward_by_convolution(const DiagonalScan<double>&, double*);
template void scan_backward_by_convolution(const DiagonalScanBackward<float>&);
template void scan_backward_by_convolution(const DiagonalScanBackward<Bf16>&);
template void scan_backward_by_convolution(const DiagonalScanBackward<double>&);

}  // namespace lra::kernels
