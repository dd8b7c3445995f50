// The matrix scan on a device.
#include "ops/cuda/device.h"
#include "ops/scan/matrix_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

// Kernels take keys and values up to a width, and the delta rule without reads of its own.
constexpr int64_t kMostWidth = 1024;
bool is_composed(const Tensor& q, const Tensor& v, const MaybeTensor& reads) {
  return reads || std::max(q.size(3), v.size(3)) > kMostWidth;
}

Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& log_decay,
               const MaybeTensor& beta, int64_t reversed_heads, const MaybeTensor& mask, bool delta,
               const MaybeTensor& reads) {
  const OnDeviceOf device(q, {k, v, log_decay, beta, mask, reads});
  const MatrixScanArguments in(q, k, v, log_decay, beta, reversed_heads, mask, delta, reads);
  if (is_composed(q, v, reads)) {
    return composed_matrix_scan(q, k, v, log_decay, beta, reversed_heads, mask, delta, reads);
  }
  const Tensor o = at::empty(v.sizes(), v.options());
  with_device_type(q, "lra::matrix_scan", [&]<typename T>(T) {
    cuda::matrix_scan_forward<T>(in.problem<T>(), mutable_data<T>(o), device.stream());
  });
  return o;
}

MatrixScanGradients backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Tensor& log_decay, const MaybeTensor& beta,
                             int64_t reversed_heads, const MaybeTensor& mask, bool delta,
                             const MaybeTensor& reads) {
  const OnDeviceOf device(q, {grad, k, v, log_decay, beta, mask, reads});
  const MatrixScanArguments in(q, k, v, log_decay, beta, reversed_heads, mask, delta, reads);
  if (is_composed(q, v, reads)) {
    return composed_matrix_scan_backward(grad, q, k, v, log_decay, beta, reversed_heads, mask,
                                         delta, reads);
  }
  const MatrixScanResults results(in, grad);
  with_device_type(q, "lra::matrix_scan", [&]<typename T>(T) {
    const auto problem = results.problem<T>();
    const Tensor scratch =
        at::empty({cuda::matrix_scan_scratch(problem.problem)}, in.log_decay.options());
    cuda::matrix_scan_backward<T>(problem, scratch.mutable_data_ptr<float>(), device.stream());
  });
  return results.gradients();
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("matrix_scan", forward);
  m.impl("matrix_scan_backward", backward);
}

}  // namespace lra::ops::device
