// Tensors as a problem of kernels/scan/matrix_scan.h, on any device.
#pragma once

#include <array>

#include "kernels/scan/matrix_scan.h"
#include "ops/dispatch.h"
#include "ops/even_rows.h"
#include "ops/scan/matrix_scan.h"

namespace lra::ops {

// Kernels of torch.ops.lra.matrix_scan and its backward pass from functions of the arguments as
// one.
template <Tensor (*kFunction)(const MatrixScanInput&)>
Tensor matrix_scan_kernel(const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& log_decay, const MaybeTensor& beta, int64_t reversed_heads,
                          const MaybeTensor& mask, bool delta, const MaybeTensor& reads) {
  return kFunction({q, k, v, log_decay, tensor_or_empty(beta), reversed_heads,
                    tensor_or_empty(mask), delta, tensor_or_empty(reads)});
}
template <MatrixScanGradients (*kFunction)(const Tensor&, const MatrixScanInput&)>
MatrixScanGradients matrix_scan_backward_kernel(const Tensor& grad, const Tensor& q,
                                                const Tensor& k, const Tensor& v,
                                                const Tensor& log_decay, const MaybeTensor& beta,
                                                int64_t reversed_heads, const MaybeTensor& mask,
                                                bool delta, const MaybeTensor& reads) {
  return kFunction(grad, {q, k, v, log_decay, tensor_or_empty(beta), reversed_heads,
                          tensor_or_empty(mask), delta, tensor_or_empty(reads)});
}

// The checked arguments of torch.ops.lra.matrix_scan, q, k and v as [B, L, heads width] with even
// rows, the others contiguous, and the lengths in the mask.
struct MatrixScanArguments {
  explicit MatrixScanArguments(const MatrixScanInput& in)
      : reversed_heads(in.reversed_heads), delta(in.has_delta_rule()) {
    check_matrix_scan(in);
    q = with_even_rows(in.q_BLGK.flatten(2));
    k = with_even_rows(in.k_BLGK.flatten(2));
    v = with_even_rows(in.v_BLHV.flatten(2));
    key_heads = in.q_BLGK.size(2);
    heads = in.v_BLHV.size(2);
    keys = in.q_BLGK.size(3);
    values = in.v_BLHV.size(3);
    log_decay = in.log_decay_BLHK.contiguous();
    if (in.beta_BLH.defined()) beta = in.beta_BLH.contiguous();
    if (in.reads_BLGK.defined()) reads = with_even_rows(in.reads_BLGK.flatten(2));
    lengths = lengths_of(optional_tensor(in.mask_BL));
  }

  // Points into this.
  template <typename T>
  kernels::MatrixScan<T> problem() const {
    using W = kernels::Wide<T>;
    return {.batch = q.size(0),
            .length = q.size(1),
            .heads = heads,
            .key_heads = key_heads,
            .keys = keys,
            .values = values,
            .decays = log_decay.size(3),
            .reversed_heads = reversed_heads,
            .q_row = row_stride(q),
            .k_row = row_stride(k),
            .v_row = row_stride(v),
            .r_row = reads.defined() ? row_stride(reads) : 0,
            .q = const_data<T>(q),
            .k = const_data<T>(k),
            .v = const_data<T>(v),
            .r = reads.defined() ? const_data<T>(reads) : nullptr,
            .log_decay = log_decay.const_data_ptr<W>(),
            .beta = beta.defined() ? beta.const_data_ptr<W>() : nullptr,
            .delta = delta,
            .lengths = lengths.defined() ? lengths.const_data_ptr<int32_t>() : nullptr};
  }

  Tensor q, k, v, log_decay, beta, reads, lengths;
  int64_t key_heads, heads, keys, values, reversed_heads;
  bool delta;
};

// The backward pass for the gradient of o, with memory for its results. Needs the arguments while
// it lives.
class MatrixScanResults {
 public:
  MatrixScanResults(const MatrixScanArguments& in, const Tensor& grad)
      : in_(in),
        grad_(grad.contiguous()),
        of_q_(at::empty({in.q.size(0), in.q.size(1), in.heads, in.keys}, in.q.options())),
        of_k_(at::empty_like(of_q_)),
        of_v_(at::empty(grad_.sizes(), in.v.options())),
        of_log_decay_(at::empty_like(in.log_decay)),
        of_beta_(in.beta.defined() ? at::empty_like(in.beta)
                                   : at::empty({0}, in.log_decay.options())),
        of_reads_(in.reads.defined() ? at::empty_like(of_k_) : at::empty({0}, in.k.options())) {
    const std::array<int64_t, 4> of_o = {in.v.size(0), in.v.size(1), in.heads, in.values};
    LRA_CHECK_EQ(grad.sizes(), at::IntArrayRef(of_o));
  }

  template <typename T>
  kernels::MatrixScanBackward<T> problem() const {
    using W = kernels::Wide<T>;
    return {.problem = in_.problem<T>(),
            .grad = const_data<T>(grad_),
            .grad_q = mutable_data<T>(of_q_),
            .grad_k = mutable_data<T>(of_k_),
            .grad_v = mutable_data<T>(of_v_),
            .grad_r = mutable_data<T>(of_reads_),
            .grad_log_decay = of_log_decay_.mutable_data_ptr<W>(),
            .grad_beta = of_beta_.mutable_data_ptr<W>()};
  }

  MatrixScanGradients gradients() const {
    // Heads with the same key add up.
    const auto of_keys = [&](const Tensor& t) {
      return in_.key_heads == in_.heads ? t : t.unflatten(2, {in_.key_heads, -1}).sum(3);
    };
    return {of_keys(of_q_), of_keys(of_k_), of_v_,
            of_log_decay_,  of_beta_,       in_.reads.defined() ? of_keys(of_reads_) : of_reads_};
  }

 private:
  const MatrixScanArguments& in_;
  const Tensor grad_, of_q_, of_k_, of_v_, of_log_decay_, of_beta_, of_reads_;
};

}  // namespace lra::ops
