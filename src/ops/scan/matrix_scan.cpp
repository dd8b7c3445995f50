#include "ops/scan/matrix_scan.h"

#include "ops/composed.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan_problem.h"

namespace lra::ops {
namespace {

Tensor matrix_scan_forward_cpu(const Tensor& q, const Tensor& k, const Tensor& v,
                               const Tensor& log_decay, const MaybeTensor& beta,
                               int64_t reversed_heads, const MaybeTensor& mask, bool delta,
                               const MaybeTensor& reads) {
  const MatrixScanArguments in(q, k, v, log_decay, beta, reversed_heads, mask, delta, reads);
  const Tensor o = at::empty(v.sizes(), v.options());
  with_float_type(q, "lra::matrix_scan", [&]<typename T>(T) {
    kernels::matrix_scan_forward<T>(in.problem<T>(), mutable_data<T>(o));
  });
  return o;
}

MatrixScanGradients matrix_scan_backward_cpu(const Tensor& grad, const Tensor& q, const Tensor& k,
                                             const Tensor& v, const Tensor& log_decay,
                                             const MaybeTensor& beta, int64_t reversed_heads,
                                             const MaybeTensor& mask, bool delta,
                                             const MaybeTensor& reads) {
  const MatrixScanArguments in(q, k, v, log_decay, beta, reversed_heads, mask, delta, reads);
  const MatrixScanResults results(in, grad);
  with_float_type(q, "lra::matrix_scan",
                  [&]<typename T>(T) { kernels::matrix_scan_backward<T>(results.problem<T>()); });
  return results.gradients();
}

struct MatrixScanFunction : torch::autograd::Function<MatrixScanFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& log_decay, const MaybeTensor& beta, int64_t reversed_heads,
                        const MaybeTensor& mask, bool delta, const MaybeTensor& reads) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->saved_data["reversed_heads"] = reversed_heads;
    ctx->saved_data["delta"] = delta;
    ctx->save_for_backward(
        {q, k, v, log_decay, tensor_or_empty(beta), tensor_or_empty(reads), tensor_or_empty(mask)});
    return dispatch<"lra::matrix_scan", matrix_scan_forward_cpu>(
        q, k, v, log_decay, beta, reversed_heads, mask, delta, reads);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto s = ctx->get_saved_variables();
    const int64_t reversed_heads = ctx->saved_data["reversed_heads"].toInt();
    const bool delta = ctx->saved_data["delta"].toBool();
    if (at::GradMode::is_enabled()) {
      const auto o = [&](const auto& in) {
        return variable_list{
            composed_matrix_scan(in[0], in[1], in[2], in[3], optional_tensor(in[4]), reversed_heads,
                                 optional_tensor(in[6]), delta, optional_tensor(in[5]))};
      };
      const variable_list of = composed_gradients("lra::matrix_scan", o, s, grads, 7);
      return {of[0], of[1], of[2], of[3], of[4], Tensor(), Tensor(), Tensor(), of[5]};
    }
    auto [of_q, of_k, of_v, of_log_decay, of_beta, of_reads] =
        dispatch<"lra::matrix_scan_backward", matrix_scan_backward_cpu>(
            grads[0], s[0], s[1], s[2], s[3], optional_tensor(s[4]), reversed_heads,
            optional_tensor(s[6]), delta, optional_tensor(s[5]));
    return {of_q,
            of_k,
            of_v,
            of_log_decay,
            s[4].defined() ? of_beta : Tensor(),
            Tensor(),
            Tensor(),
            Tensor(),
            s[5].defined() ? of_reads : Tensor()};
  }
};

}  // namespace

void check_matrix_scan(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& log_decay,
                       const MaybeTensor& beta, const MaybeTensor& mask, bool delta,
                       const MaybeTensor& reads) {
  LRA_CHECK(q.dim() == 4 && v.dim() == 4 && log_decay.dim() == 4);
  LRA_CHECK_EQ(k.sizes(), q.sizes());
  LRA_CHECK_EQ(v.sizes().slice(0, 2), q.sizes().slice(0, 2));
  LRA_CHECK(q.size(2) == 0 ? v.size(2) == 0 : v.size(2) % q.size(2) == 0);
  LRA_CHECK_EQ(log_decay.sizes().slice(0, 3), v.sizes().slice(0, 3));
  LRA_CHECK(log_decay.size(3) == 1 || log_decay.size(3) == q.size(3));
  for (const Tensor& t : {k, v}) LRA_CHECK(t.scalar_type() == q.scalar_type());
  LRA_CHECK(log_decay.scalar_type() == wide_type(q));
  if (beta) {
    LRA_CHECK_EQ(beta->sizes(), v.sizes().slice(0, 3));
    LRA_CHECK(beta->scalar_type() == wide_type(q));
  }
  if (reads) {
    LRA_CHECK(delta);
    LRA_CHECK_EQ(reads->sizes(), k.sizes());
    LRA_CHECK(reads->scalar_type() == k.scalar_type());
  }
  check_mask(mask, q.size(0), q.size(1));
}

Tensor matrix_scan(const MatrixScanInput& in) {
  return dispatch<"lra::matrix_scan", matrix_scan_forward_cpu>(
      in.q_BLGK, in.k_BLGK, in.v_BLHV, in.log_decay_BLHK, optional_tensor(in.beta_BLH),
      in.reversed_heads, optional_tensor(in.mask_BL), in.delta, optional_tensor(in.reads_BLGK));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "matrix_scan(Tensor q, Tensor k, Tensor v, Tensor log_decay, Tensor? beta=None, int "
      "reversed_heads=0, Tensor? mask=None, bool delta=True, Tensor? reads=None) -> Tensor",
      composed_matrix_scan);
  m.def(
      "matrix_scan_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor log_decay, Tensor? "
      "beta, int reversed_heads, Tensor? mask, bool delta, Tensor? reads) -> (Tensor, Tensor, "
      "Tensor, Tensor, Tensor, Tensor)");
}

// Not a part of m.def(): tracing would look into it, and it differentiates.
TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("matrix_scan_backward", composed_matrix_scan_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("matrix_scan", matrix_scan_forward_cpu);
  m.impl("matrix_scan_backward", matrix_scan_backward_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("matrix_scan", applies<MatrixScanFunction>(matrix_scan_forward_cpu));
}

}  // namespace lra::ops
