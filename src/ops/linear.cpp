#include "ops/linear.h"

#include <ATen/TensorSubclassLikeUtils.h>

#include <algorithm>

#include "kernels/choice.h"
#include "kernels/gemm/linear.h"
#include "ops/composed.h"
#include "ops/pointwise/pointwise.h"
#include "ops/precision.h"
#include "ops/product.h"

namespace lra::ops {
namespace {

using Pointwise = Tensor(const Tensor&, const Tensor&, const MaybeTensor&, std::string_view,
                         c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);

// oneDNN's own C symbols are not exported by the wheel; this internal operator is, and takes any
// strides.
std::optional<c10::TypedOperatorHandle<Pointwise>> find_onednn() {
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (!found || !at::globalContext().userEnabledMkldnn()) return std::nullopt;
  if (!found->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return std::nullopt;
  return found->typed<Pointwise>();
}

const std::optional<c10::TypedOperatorHandle<Pointwise>>& onednn() {
  static const auto handle = find_onednn();
  return handle;
}

bool use_onednn(const Tensor& x) {
  const bool has_type = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  return onednn() && x.device().is_cpu() && has_type && x.numel() > 0;
}

// oneDNN compiles code for each number of rows that it meets, up to half a megabyte, and keeps it
// until the program ends: batches of examples of all lengths would take more memory with every
// step. So it meets few numbers: kSliceRows at a time, and the rest with zeros up to a multiple of
// kRestRows.
constexpr int64_t kSliceRows = 2048, kRestRows = 128;

// x [..., K] times w [N, K]^T with an optional bias and activation ("none" or "gelu"). The bias of
// bfloat16 may be float32.
Tensor call_onednn(const Tensor& x, const Tensor& w, const Tensor& bias, const char* activation) {
  const auto call = [&](const Tensor& rows) {
    return onednn()->call(rows, w, optional_tensor(bias), activation,
                          c10::List<std::optional<at::Scalar>>(),
                          std::optional<std::string_view>("tanh"));
  };
  const Tensor x_MK = x.reshape({-1, x.size(-1)});
  const int64_t rows = x_MK.size(0), rest = rows % kSliceRows, whole = rows - rest;
  const int64_t missing = (kRestRows - rest % kRestRows) % kRestRows;
  if (rest == 0 || (whole == 0 && missing == 0)) return call(x);
  const Tensor padded = at::constant_pad_nd(x_MK.narrow(0, whole, rest), {0, 0, 0, missing});
  const Tensor of_rest = call(padded).narrow(0, 0, rest);
  auto shape = x.sizes().vec();
  shape.back() = w.size(0);
  if (whole == 0) return of_rest.view(shape);
  Tensor y_MN = at::empty({rows, w.size(0)}, x.options());
  for (int64_t first = 0; first < whole; first += kSliceRows) {
    y_MN.narrow(0, first, kSliceRows).copy_(call(x_MK.narrow(0, first, kSliceRows)));
  }
  y_MN.narrow(0, whole, rest).copy_(of_rest);
  return y_MN.view(shape);
}

bool use_tiles(const Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == at::kBFloat16 && kernels::has_tiles();
}

// x [..., K] times w [N, K]^T with an optional bias, and GELU.
Tensor linear_on_tiles(const Tensor& x, const Tensor& w_NK, const Tensor& bias_in, bool gelu) {
  LRA_CHECK_EQ(w_NK.dim(), 2);
  LRA_CHECK_EQ(w_NK.size(1), x.size(-1));
  LRA_CHECK(!bias_in.defined() || bias_in.sizes() == w_NK.sizes().slice(0, 1));
  auto shape = x.sizes().vec();
  shape.back() = w_NK.size(0);
  Tensor y = at::empty(shape, x.options());
  if (y.numel() == 0) return y;
  Tensor rows = x.reshape({y.numel() / y.size(-1), x.size(-1)});
  if (rows.stride(1) != 1) rows = rows.contiguous();
  const bool has_unit_stride = w_NK.stride(0) == 1 || w_NK.stride(1) == 1;
  const Tensor w = has_unit_stride ? w_NK : w_NK.clone(at::MemoryFormat::Contiguous);
  const Tensor bias = bias_in.defined() ? bias_in.to(at::kFloat).contiguous() : bias_in;
  kernels::linear_rows({rows.size(0), rows.size(1), w.size(0), const_data<kernels::Bf16>(rows),
                        rows.stride(0), const_data<kernels::Bf16>(w), w.stride(1), w.stride(0),
                        bias.defined() ? bias.const_data_ptr<float>() : nullptr, gelu,
                        mutable_data<kernels::Bf16>(y), y.size(-1)});
  return y;
}

// On AVX2, oneDNN is slower than the BLAS for long sums (docs/numerics.md).
bool has_deep_products() { return !kernels::isa_available(kernels::Isa::kAvx512); }

bool use_deep_product(const Tensor& x) {
  constexpr int64_t kDeep = 256;
  return x.scalar_type() == at::kFloat && x.size(-1) >= kDeep && has_deep_products();
}

Tensor direct_linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  if (use_tiles(x)) return linear_on_tiles(x, w, bias, false);
  if (!use_onednn(x)) {
    return at::linear(x, w, optional_tensor(bias.defined() ? beside(bias, x) : bias));
  }
  if (!use_deep_product(x)) return call_onednn(x.contiguous(), w, bias, "none");
  auto shape = x.sizes().vec();
  shape.back() = w.size(0);
  return deep_product(x.reshape({-1, x.size(-1)}), w.t(), bias).view(shape);
}

Tensor onednn_gelu(const Tensor& x, const Tensor& w, const Tensor& bias) {
  return call_onednn(x.contiguous(), w, bias, "gelu");
}

using Product = Tensor(const Tensor& x, const Tensor& w, const Tensor& bias);

// Rows are widened to float in chunks, so that the widened rows stay in cache.
Tensor widened(const Tensor& x, const Tensor& w, const Tensor& bias, Product* product) {
  constexpr int64_t kRun = 1024;
  const Tensor rows = x.reshape({-1, x.size(-1)}), wide_w = w.to(at::kFloat);
  const Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
  Tensor y = at::empty({rows.size(0), w.size(0)}, x.options());
  for (int64_t first = 0; first < rows.size(0); first += kRun) {
    const int64_t count = std::min(kRun, rows.size(0) - first);
    const Tensor wide = rows.narrow(0, first, count).to(at::kFloat);
    y.narrow(0, first, count).copy_(product(wide, wide_w, wide_bias));
  }
  auto shape = x.sizes().vec();
  shape.back() = w.size(0);
  return y.view(shape);
}

Tensor in_best_type(const Tensor& x, const Tensor& w, const Tensor& bias, Product* product) {
  const bool widens = has_slow_products(x) && x.numel() > 0;
  return widens ? widened(x, w, bias, product) : product(x, w, bias);
}

Tensor linear_impl(const Tensor& x, const Tensor& weight, const MaybeTensor& bias) {
  return in_best_type(x, beside(weight, x), tensor_or_empty(bias), direct_linear);
}

Tensor linear_gelu_impl(const Tensor& x, const Tensor& weight_in, const Tensor& bias) {
  const Tensor weight = beside(weight_in, x);
  if (use_tiles(x)) return linear_on_tiles(x, weight, bias, true);
  // oneDNN's own GELU takes 5 ns a number on AVX2 (Zen 3), ours 0.6.
  if (use_onednn(x) && kernels::isa_available(kernels::Isa::kAvx512)) {
    return in_best_type(x, weight, bias, onednn_gelu);
  }
  return gelu_dropout(linear_impl(x, weight, bias), 0, 0);
}

Tensor linear_backward_input_impl(const Tensor& grad, const Tensor& weight) {
  if (use_onednn(grad) || use_tiles(grad)) return in_best_type(grad, weight.t(), {}, direct_linear);
  return product(grad, weight);
}

std::tuple<Tensor, Tensor, Tensor> linear_backward_impl(const Tensor& grad, const Tensor& x,
                                                        const Tensor& weight_in, bool need_x,
                                                        bool need_bias) {
  const Tensor weight = beside(weight_in, x);
  const Tensor grad_2d = grad.reshape({-1, grad.size(-1)});
  const Tensor x_2d = x.reshape({-1, x.size(-1)});
  Tensor grad_x;
  if (need_x) grad_x = linear_backward_input(grad_2d, weight).view(x.sizes());
  if (!need_bias) return {grad_x, sum_of_outer_products(grad_2d, x_2d), Tensor()};
  const auto [grad_weight, grad_bias] = sum_of_outer_products_and_rows(grad_2d, x_2d);
  return {grad_x, grad_weight, grad_bias};
}

Tensor composed_linear(const Tensor& x, const Tensor& weight, const MaybeTensor& bias) {
  return at::linear(x, beside(weight, x), bias ? optional_tensor(beside(*bias, x)) : bias);
}

Tensor composed_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return at::gelu(composed_linear(x, weight, bias), "tanh");
}

// sum [M, K] += grad [M, N] times weight [N, K]
void add_linear_backward_input(const Tensor& sum, const Tensor& grad, const Tensor& weight) {
  sum.add_(linear_backward_input(grad, weight));
}

// True if nobody else sees the gradient. One of a batched backward pass has no storage.
bool may_be_overwritten(const Tensor& grad) {
  return !at::isTensorSubclassLike(grad) && grad.has_storage() && grad.use_count() == 1 &&
         grad.storage().use_count() == 1 && grad.is_contiguous();
}

// Gives y, and of a stream x too.
struct LinearFunction : torch::autograd::Function<LinearFunction> {
  // The bias is optional, not undefined: the library takes no undefined tensor for an input.
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight_in,
                               const MaybeTensor& bias, bool of_stream) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor weight = beside(weight_in, x);
    ctx->save_for_backward({x, weight, tensor_or_empty(bias)});
    ctx->set_materialize_grads(false);
    const Tensor y = linear(x, weight, tensor_or_empty(bias));
    return of_stream ? variable_list{y, x} : variable_list{y};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    if (at::GradMode::is_enabled()) {
      return composed_gradients(
          "lra::linear",
          [](const auto& in) {
            return variable_list{composed_linear(in[0], in[1], optional_tensor(in[2])), in[0]};
          },
          saved, grads, 4);
    }
    if (!grads[0].defined()) return {grads.back(), Tensor(), Tensor(), Tensor()};
    const bool need_x = ctx->needs_input_grad(0);
    const bool is_sum = need_x && grads.size() > 1 && grads[1].defined();
    const bool in_place = is_sum && may_be_overwritten(grads[1]);
    auto result =
        linear_backward(grads[0], saved[0], saved[1], need_x && !in_place, saved[2].defined());
    if (in_place) {
      result.x = grads[1];
      dispatch<"lra::add_linear_backward_input_", add_linear_backward_input>(
          result.x.view({-1, result.x.size(-1)}), grads[0].reshape({-1, grads[0].size(-1)}),
          saved[1]);
    } else if (is_sum) {
      result.x = result.x + grads[1];
    }
    return {result.x, result.weight, result.bias, Tensor()};
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return dispatch<"lra::linear", linear_impl>(x, weight, optional_tensor(bias));
}

Tensor linear_of_stream(Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!at::GradMode::is_enabled() || x.is_cpu()) return linear(x, weight, bias);
  const auto both = LinearFunction::apply(x, weight, optional_tensor(bias), /*of_stream=*/true);
  x = both[1];
  return both[0];
}

Tensor linear_backward_input(const Tensor& grad, const Tensor& weight) {
  return dispatch<"lra::linear_backward_input", linear_backward_input_impl>(grad, weight);
}

LinearGrads linear_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, bool need_x,
                            bool need_bias) {
  auto [grad_x, grad_weight, grad_bias] =
      dispatch<"lra::linear_backward", linear_backward_impl>(grad, x, weight, need_x, need_bias);
  return {grad_x, grad_weight, grad_bias};
}

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return dispatch<"lra::linear_gelu", linear_gelu_impl>(x, weight, bias);
}

std::string linear_choice() {
  if (!onednn()) return "library";
  return has_deep_products() ? "onednn, library for long sums" : "onednn";
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor", composed_linear);
  m.def("linear_gelu(Tensor x, Tensor weight, Tensor bias) -> Tensor", composed_gelu);
  m.def("linear_backward_input(Tensor grad, Tensor weight) -> Tensor");
  m.def(
      "linear_backward(Tensor grad, Tensor x, Tensor weight, bool need_x, bool need_bias) "
      "-> (Tensor, Tensor, Tensor)");
  m.def("add_linear_backward_input_(Tensor(a!) sum, Tensor grad, Tensor weight) -> ()");
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("add_linear_backward_input_", add_linear_backward_input);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("linear", linear_impl);
  m.impl("linear_gelu", linear_gelu_impl);
  m.impl("linear_backward_input", linear_backward_input_impl);
  m.impl("linear_backward", linear_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("linear", [](const Tensor& x, const Tensor& weight, const MaybeTensor& bias) {
    return LinearFunction::apply(x, weight, bias, /*of_stream=*/false)[0];
  });
}

}  // namespace lra::ops
