#include "ops/scan/matrix_scan.h"

#include "ops/fused_function.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan_problem.h"

namespace lra::ops {
namespace {

Tensor matrix_scan_on_cpu(const MatrixScanInput& input) {
  const MatrixScanArguments in(input);
  const Tensor o = at::empty(input.v_BLHV.sizes(), input.v_BLHV.options());
  with_float_type(o, "lra::matrix_scan", [&]<typename T>(T) {
    kernels::matrix_scan_forward<T>(in.problem<T>(), mutable_data<T>(o));
  });
  return o;
}

MatrixScanGradients matrix_scan_backward_on_cpu(const Tensor& grad, const MatrixScanInput& input) {
  const MatrixScanArguments in(input);
  const MatrixScanResults results(in, grad);
  with_float_type(in.q, "lra::matrix_scan",
                  [&]<typename T>(T) { kernels::matrix_scan_backward<T>(results.problem<T>()); });
  return results.gradients();
}

constexpr auto kComposedMatrixScan = matrix_scan_kernel<composed_matrix_scan>;
constexpr auto kComposedMatrixScanBackward =
    matrix_scan_backward_kernel<composed_matrix_scan_backward>;

struct MatrixScanFunction
    : FusedOperator<MatrixScanFunction, "lra::matrix_scan", kComposedMatrixScan,
                    "lra::matrix_scan_backward", kComposedMatrixScanBackward, /*kMaskPlace=*/5> {};

}  // namespace

void check_matrix_scan(const MatrixScanInput& in) {
  const Tensor &q = in.q_BLGK, &k = in.k_BLGK, &v = in.v_BLHV, &log_decay = in.log_decay_BLHK;
  LRA_CHECK(q.dim() == 4 && v.dim() == 4 && log_decay.dim() == 4);
  LRA_CHECK_EQ(k.sizes(), q.sizes());
  LRA_CHECK_EQ(v.sizes().slice(0, 2), q.sizes().slice(0, 2));
  LRA_CHECK(q.size(2) == 0 ? v.size(2) == 0 : v.size(2) % q.size(2) == 0);
  LRA_CHECK_EQ(log_decay.sizes().slice(0, 3), v.sizes().slice(0, 3));
  LRA_CHECK(log_decay.size(3) == 1 || log_decay.size(3) == q.size(3));
  for (const Tensor& t : {k, v}) LRA_CHECK(t.scalar_type() == q.scalar_type());
  LRA_CHECK(log_decay.scalar_type() == wide_type(q));
  if (in.beta_BLH.defined()) {
    LRA_CHECK_EQ(in.beta_BLH.sizes(), v.sizes().slice(0, 3));
    LRA_CHECK(in.beta_BLH.scalar_type() == wide_type(q));
  }
  if (in.reads_BLGK.defined()) {
    LRA_CHECK(in.has_delta_rule());
    LRA_CHECK_EQ(in.reads_BLGK.sizes(), k.sizes());
    LRA_CHECK(in.reads_BLGK.scalar_type() == k.scalar_type());
  }
  check_mask(optional_tensor(in.mask_BL), q.size(0), q.size(1));
}

Tensor matrix_scan(const MatrixScanInput& in) {
  return dispatch<"lra::matrix_scan", kComposedMatrixScan>(
      in.q_BLGK, in.k_BLGK, in.v_BLHV, in.log_decay_BLHK, optional_tensor(in.beta_BLH),
      in.reversed_heads, optional_tensor(in.mask_BL), in.delta, optional_tensor(in.reads_BLGK));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "matrix_scan(Tensor q, Tensor k, Tensor v, Tensor log_decay, Tensor? beta=None, int "
      "reversed_heads=0, Tensor? mask=None, bool delta=True, Tensor? reads=None) -> Tensor",
      kComposedMatrixScan);
  m.def(
      "matrix_scan_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor log_decay, Tensor? "
      "beta, int reversed_heads, Tensor? mask, bool delta, Tensor? reads) -> (Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor)");
}

// Not a part of m.def(): tracing would look into it, and it differentiates.
TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("matrix_scan_backward", kComposedMatrixScanBackward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("matrix_scan", matrix_scan_kernel<matrix_scan_on_cpu>);
  m.impl("matrix_scan_backward", matrix_scan_backward_kernel<matrix_scan_backward_on_cpu>);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("matrix_scan", applies<MatrixScanFunction>(kComposedMatrixScan));
}

}  // namespace lra::ops
