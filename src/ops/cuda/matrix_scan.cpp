// The matrix scan on a device.
#include "ops/cuda/device.h"
#include "ops/scan/matrix_scan_problem.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

// Kernels take keys and values up to a width; with reads, what every device has shared memory for.
constexpr int64_t kMostWidth = 1024, kMostKeysWithReads = 256;
bool is_composed(const MatrixScanInput& in) {
  const int64_t keys = in.q_BLGK.size(3), values = in.v_BLHV.size(3);
  return keys > (in.reads_BLGK.defined() ? kMostKeysWithReads : kMostWidth) || values > kMostWidth;
}

Tensor forward(const MatrixScanInput& input) {
  const Tensor &q = input.q_BLGK, &v = input.v_BLHV;
  const OnDeviceOf device(
      q, {input.k_BLGK, v, input.log_decay_BLHK, input.beta_BLH, input.mask_BL, input.reads_BLGK});
  const MatrixScanArguments in(input);
  if (is_composed(input)) return composed_matrix_scan(input);
  const Tensor o = at::empty(v.sizes(), v.options());
  with_device_type(q, "lra::matrix_scan", [&]<typename T>(T) {
    cuda::matrix_scan_forward<T>(in.problem<T>(), mutable_data<T>(o), device.stream());
  });
  return o;
}

MatrixScanGradients backward(const Tensor& grad, const MatrixScanInput& input) {
  const OnDeviceOf device(input.q_BLGK, {grad, input.k_BLGK, input.v_BLHV, input.log_decay_BLHK,
                                         input.beta_BLH, input.mask_BL, input.reads_BLGK});
  const MatrixScanArguments in(input);
  if (is_composed(input)) return composed_matrix_scan_backward(grad, input);
  const MatrixScanResults results(in, grad);
  with_device_type(in.q, "lra::matrix_scan", [&]<typename T>(T) {
    const auto problem = results.problem<T>();
    const Tensor scratch =
        at::empty({cuda::matrix_scan_scratch(problem.problem)}, in.log_decay.options());
    cuda::matrix_scan_backward<T>(problem, scratch.mutable_data_ptr<float>(), device.stream());
  });
  return results.gradients();
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("matrix_scan", matrix_scan_kernel<forward>);
  m.impl("matrix_scan_backward", matrix_scan_backward_kernel<backward>);
}

}  // namespace lra::ops::device
