// Shapes and dtypes of the operators' results, for tensors without data: torch's meta device and
// FakeTensorMode, which torch.compile traces with.
//
// Only operators with a kernel for each device are here; the others are composed of these, or of
// LibTorch's.
#include "ops/attention/attention_arguments.h"
#include "ops/attention/feature_attention_problem.h"
#include "ops/dispatch.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan_problem.h"
#include "ops/scan/selective_scan_problem.h"

namespace lra::ops::meta {
namespace {

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Sizes = c10::SymDimVector;

Tensor result(const Sizes& sizes, const Tensor& like) {
  return at::empty_symint(sizes, like.options());
}
Tensor wide_result(const Sizes& sizes, const Tensor& like) {
  return at::empty_symint(sizes, like.options().dtype(wide_type(like)));
}
Tensor contiguous_like(const Tensor& t) { return at::empty_symint(t.sym_sizes(), t.options()); }

using In = const Tensor&;
using MaybeIn = const MaybeTensor&;
// Kernels of operators whose result is like the first of their arguments, or the second.
template <typename... Others>
Tensor like_first(const Tensor& t, Others...) {
  return contiguous_like(t);
}
template <typename... Others>
Tensor like_second(const Tensor&, const Tensor& t, Others...) {
  return contiguous_like(t);
}

// The sizes of `t` with another last one.
Sizes with_last(const Tensor& t, c10::SymInt last) {
  Sizes sizes(t.sym_sizes().begin(), t.sym_sizes().end());
  LRA_CHECK(!sizes.empty());
  sizes.back() = std::move(last);
  return sizes;
}

Tensor rows_through(const Tensor& x, const Tensor& weight) {
  return result(with_last(x, weight.sym_size(0)), x);
}
Three linear_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, bool need_x,
                      bool need_bias) {
  const Sizes of_bias = {weight.sym_size(0)};
  return {need_x ? contiguous_like(x) : Tensor(),
          wide_result({weight.sym_size(0), weight.sym_size(1)}, x),
          need_bias ? wide_result(of_bias, grad) : Tensor()};
}

Three layer_norm_forward(const Tensor& x, const Tensor&, const Tensor&, double) {
  const Sizes of_rows = with_last(x, 1);
  return {contiguous_like(x), wide_result(of_rows, x), wide_result(of_rows, x)};
}
Three layer_norm_backward(const Tensor&, const Tensor& x, const Tensor&, const Tensor&,
                          const Tensor& weight, const MaybeTensor&) {
  return {contiguous_like(x), contiguous_like(weight), contiguous_like(weight)};
}

Tensor gate(const Tensor& value, const MaybeTensor& gate) {
  return result(
      gate ? with_last(value, value.sym_size(-1)) : with_last(value, value.sym_size(-1) / 2),
      value);
}
// Inputs of gate and of silu: a first one, and a second one or none.
Two gate_backward(const Tensor&, const Tensor& first, const MaybeTensor& second) {
  return {contiguous_like(first), second ? contiguous_like(first) : result({0}, first)};
}

Two feature_attention_forward(const Tensor& qkv, c10::string_view, const MaybeTensor& mask, double,
                              double) {
  check_feature_attention(qkv, mask);
  const auto symbolic = [](const std::vector<int64_t>& sizes) {
    return Sizes(sizes.begin(), sizes.end());
  };
  return {result(symbolic(feature_out_shape(qkv)), qkv),
          wide_result(symbolic(feature_sums_shape(qkv)), qkv)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> diagonal_scan_backward(const Tensor&, const Tensor& x,
                                                                  const Tensor& a, const Tensor& c,
                                                                  const MaybeTensor&,
                                                                  const MaybeTensor&) {
  return {contiguous_like(x), contiguous_like(a), contiguous_like(c), result({x.sym_size(2)}, a)};
}

std::tuple<Tensor, Tensor> selective_scan_forward(const SelectiveScanInput& in) {
  return {contiguous_like(in.x_BLD), result({kept_states(in.x_BLD, in.b_BLGN)}, in.a_ND)};
}
SelectiveScanGradients selective_scan_backward(const Tensor&, const SelectiveScanInput& in,
                                               const MaybeTensor&) {
  const Tensor &a = in.a_ND, &b = in.b_BLGN, &frequency = in.frequency_ND;
  return {contiguous_like(in.x_BLD),
          contiguous_like(in.x_BLD),
          contiguous_like(a),
          contiguous_like(b),
          contiguous_like(in.c_BLGN),
          contiguous_like(in.dt_bias_D),
          result({b.sym_size(3), a.sym_size(1)}, a),
          contiguous_like(in.dt_bias_D),
          frequency.defined() ? contiguous_like(frequency) : result({0}, a)};
}

Tensor matrix_scan(const MatrixScanInput& in) { return contiguous_like(in.v_BLHV); }
MatrixScanGradients matrix_scan_backward(const Tensor&, const MatrixScanInput& in) {
  const auto like = [](const Tensor& t, const Tensor& otherwise) {
    return t.defined() ? contiguous_like(t) : result({0}, otherwise);
  };
  return {contiguous_like(in.q_BLGK),           contiguous_like(in.k_BLGK),
          contiguous_like(in.v_BLHV),           contiguous_like(in.log_decay_BLHK),
          like(in.beta_BLH, in.log_decay_BLHK), like(in.reads_BLGK, in.k_BLGK)};
}

Stack attention_forward(Values values) {
  const Tensor q = values[0].toTensor();
  return {result(with_last(q, values[2].toTensor().sym_size(3)), q),
          wide_result({2, q.sym_size(0), q.sym_size(2), q.sym_size(1)}, q)};
}

// The gradients of attention are written to arguments.
Stack nothing(Values) { return {}; }

Tensor draw_rotations(const Tensor& x, int64_t rounds, int64_t columns, int64_t) {
  return at::empty_symint(Sizes{x.sym_size(2), rounds, x.sym_size(3), columns},
                          x.options().dtype(at::kFloat));
}
Tensor hash_buckets(const Tensor& x, const Tensor& rotations, const MaybeTensor&) {
  return at::empty_symint(Sizes{rotations.sym_size(1), x.sym_size(0), x.sym_size(2), x.sym_size(1)},
                          x.options().dtype(at::kInt));
}
std::vector<Tensor> sorted_runs(const Tensor& buckets, int64_t, int64_t, bool, bool) {
  std::vector<Tensor> rounds;
  for (int64_t r = 0; r < buckets.size(0); ++r) {
    rounds.push_back(result(
        {buckets.sym_size(1) * buckets.sym_size(2), 3 + 3 * r, buckets.sym_size(3)}, buckets));
  }
  return rounds;
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, Meta, m) {
  m.impl("linear", [](const Tensor& x, const Tensor& weight, const MaybeTensor&) {
    return rows_through(x, weight);
  });
  m.impl("linear_gelu", [](const Tensor& x, const Tensor& weight, const Tensor&) {
    return rows_through(x, weight);
  });
  m.impl("linear_backward_input", [](const Tensor& grad, const Tensor& weight) {
    return result(with_last(grad, weight.sym_size(1)), grad);
  });
  m.impl("linear_backward", linear_backward);
  m.impl("product",
         [](const Tensor& a, const Tensor& b) { return result(with_last(a, b.sym_size(-1)), a); });
  m.impl("sum_of_outer_products", [](const Tensor& a, const Tensor& b) {
    return wide_result({a.sym_size(1), b.sym_size(1)}, a);
  });
  m.impl("sum_of_outer_products_and_rows", [](const Tensor& a, const Tensor& b) {
    return std::tuple(wide_result({a.sym_size(1), b.sym_size(1)}, a),
                      wide_result({a.sym_size(1)}, a));
  });
  m.impl("sum_of_rows", [](const Tensor& x) { return wide_result({x.sym_size(1)}, x); });
  m.impl("sum_by_token", [](const Tensor& grad, const Tensor&, int64_t rows) {
    return wide_result({rows, grad.sym_size(1)}, grad);
  });

  m.impl("layer_norm", like_first<In, In, double>);
  m.impl("layer_norm_forward", layer_norm_forward);
  m.impl("layer_norm_backward", layer_norm_backward);
  m.impl("row_norm_forward", [](const Tensor& x, const Tensor&, double, bool) {
    const Sizes rows = with_last(x, 1);
    return Three(contiguous_like(x), wide_result(rows, x), wide_result(rows, x));
  });
  m.impl("row_norm_backward",
         [](const Tensor&, const Tensor& x, const Tensor&, const Tensor&, const Tensor& weight,
            bool, MaybeIn) { return Two(contiguous_like(x), contiguous_like(weight)); });
  m.impl("activation_backward", like_second<int64_t>);
  m.impl("gate", gate);
  m.impl("gate_backward", gate_backward);
  m.impl("silu", like_first<MaybeIn>);
  m.impl("silu_backward", gate_backward);
  m.impl("dropout", like_first<double, int64_t, int64_t>);
  m.impl("dropout_add", like_first<In, double, int64_t, int64_t>);
  m.impl("gelu_dropout", like_first<double, int64_t, int64_t>);
  m.impl("gelu_dropout_backward",
         [](const Tensor& x, const Tensor&, double, int64_t, int64_t, bool again) {
           return Three(again ? contiguous_like(x) : x.new_empty({0}), contiguous_like(x),
                        at::empty({0}, x.options().dtype(at::kFloat)));
         });
  m.impl("adam_step_", [](Tensor&, const Tensor&, Tensor&, Tensor&, at::ArrayRef<double>, int64_t,
                          double, const MaybeTensor&, double) {});
  m.impl("gradient_norm",
         [](const Tensor& x) { return at::empty({}, x.options().dtype(at::kDouble)); });
  m.impl("gumbel_noise_like", like_first<int64_t>);

  m.impl("convolution", like_first<MaybeIn, In, int64_t>);
  m.impl("convolution_backward", [](const Tensor&, const Tensor& x, const MaybeTensor&,
                                    const Tensor& kernel, int64_t, std::array<bool, 2> needed) {
    return Two(needed[0] ? contiguous_like(x) : Tensor(),
               needed[1] ? contiguous_like(kernel) : Tensor());
  });
  m.impl("convolution_silu", like_first<MaybeIn, In, In, int64_t>);
  m.impl("convolution_silu_backward", [](const Tensor&, const Tensor& x, const MaybeTensor&,
                                         const Tensor& kernel, const Tensor& bias, int64_t) {
    return Three(contiguous_like(x), contiguous_like(kernel), contiguous_like(bias));
  });
  m.impl("diagonal_scan", like_first<In, In, MaybeIn, MaybeIn>);
  m.impl("diagonal_scan_backward", diagonal_scan_backward);
  m.impl("selective_scan_forward", selective_scan_kernel<selective_scan_forward>);
  m.impl("selective_scan_backward", selective_scan_backward_kernel<selective_scan_backward>);
  m.impl("hold_pairs", [](const Tensor& real, const Tensor&, const Tensor& raw_dt, const Tensor& c,
                          bool, bool) {
    const c10::SymInt pairs = real.sym_size(1), channels = raw_dt.sym_size(0);
    return Two(result({2, pairs, channels}, c), result({c.sym_size(0), 2, pairs, channels}, c));
  });
  m.impl("hold_pairs_backward",
         [](const Tensor&, const Tensor&, const Tensor& real, const Tensor& frequency,
            const Tensor& raw_dt, const Tensor& c, bool, bool) {
           return std::tuple(contiguous_like(real), contiguous_like(frequency),
                             contiguous_like(raw_dt), contiguous_like(c));
         });
  m.impl("damped_poles_backward",
         [](const Tensor&, const Tensor&, const Tensor&, const Tensor& delta, const Tensor& alpha,
            const Tensor& beta, const Tensor& eta, const Tensor& omega) {
           return std::tuple(contiguous_like(delta), contiguous_like(alpha), contiguous_like(beta),
                             contiguous_like(eta), contiguous_like(omega));
         });
  m.impl("gated_scan", like_second<int64_t, MaybeIn>);
  m.impl("gated_scan_backward",
         [](const Tensor&, const Tensor& a, const Tensor& h, int64_t, const MaybeTensor&) {
           return Two(contiguous_like(a), contiguous_like(h));
         });
  m.impl("matrix_scan", matrix_scan_kernel<matrix_scan>);
  m.impl("matrix_scan_backward", matrix_scan_backward_kernel<matrix_scan_backward>);
  m.impl("rotate_tracks", like_first<int64_t, MaybeIn, bool>);
  m.impl("packed_feature_attention", [](const Tensor& qkv, c10::string_view features,
                                        const MaybeTensor& mask, double offset, double eps) {
    return std::get<0>(feature_attention_forward(qkv, features, mask, offset, eps));
  });
  m.impl("packed_feature_attention_forward", feature_attention_forward);
  m.impl("packed_feature_attention_backward",
         like_second<In, In, c10::string_view, MaybeIn, double, double>);
  m.impl("attention_forward", boxed<attention_forward>());
  m.impl("attention_backward", boxed<nothing>());
  m.impl("draw_rotations", draw_rotations);
  m.impl("hash_buckets", hash_buckets);
  m.impl("sorted_runs", sorted_runs);
}

}  // namespace lra::ops::meta
