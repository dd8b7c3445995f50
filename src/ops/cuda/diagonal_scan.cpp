// Diagonal recurrences on a device: convolutions with the kernels k[l] = Re sum_n c_n a_n^l that
// they amount to, by the library's transforms; thousands of positions one after another took
// longer, even with two modes. The gradients of a and c are correlations.
#include "ops/scan/diagonal_scan.h"

#include "ops/cuda/circle.h"
#include "ops/scan/diagonal_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

// The kernels on a circle that holds every lag of either direction.
template <typename T>
struct Kernels {
  kernels::DiagonalScan<T> problem;
  cuda::ScanParameters parameters;
  Tensor tables;  // [D, size]

  Kernels(const DiagonalScanArguments& in, cuda::Stream stream)
      : problem(in.problem<T>()),
        parameters{problem.channels,   problem.modes, problem.planes,
                   problem.directions, problem.a,     problem.c},
        tables(at::empty({problem.channels, kernels::fourier_size(2 * problem.length)},
                         in.a.options())) {
    cuda::scan_tables(parameters, problem.length, tables.size(1), tables.mutable_data_ptr<float>(),
                      stream);
  }
};

Tensor forward(const Tensor& x, const Tensor& a, const Tensor& c, const MaybeTensor& skip,
               const MaybeTensor& mask) {
  const OnDeviceOf device(x, {a, c, skip, mask});
  const DiagonalScanArguments in(x, a, c, skip, mask);
  const Tensor y = at::empty_like(in.x);
  with_device_type(x, "lra::diagonal_scan", [&]<typename T>(T) {
    if (x.numel() == 0) return;
    const Kernels<T> of(in, device.stream());
    Circle<T>(of.problem, of.tables, nullptr, device.stream()).forward(mutable_data<T>(y));
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
  const auto options = a.options();
  const int64_t count = a.numel() + c.numel() + x.size(2);
  const Tensor gradients =
      x.numel() == 0 ? at::zeros({count}, options) : at::empty({count}, options);
  with_device_type(x, "lra::diagonal_scan", [&]<typename T>(T) {
    if (x.numel() == 0) return;
    const Kernels<T> of(in, device.stream());
    const Tensor lags = Circle<T>(of.problem, of.tables, nullptr, device.stream())
                            .backward(const_data<T>(grad), mutable_data<T>(grad_x));
    cuda::scan_gradients(of.parameters, x.size(1), lags.size(1), lags.const_data_ptr<float>(),
                         gradients.mutable_data_ptr<float>(), device.stream());
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
