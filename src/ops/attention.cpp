#include "ops/attention.h"

#include "kernels/attention/visibility.h"
#include "ops/attention_calls.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::tuple<Tensor, Tensor> forward_impl(const Tensor& q, const Tensor& k, const Tensor& v,
                                        LRA_ATTENTION_OPTIONS, const OptTensor& bias,
                                        bool /*is_part*/) {
  const auto kernel = [](const auto& problem, const auto& args) {
    kernels::attention_forward(problem, args);
  };
  return attention_forward_by(kernel, q, k, v, LRA_ATTENTION_PASS, bias);
}

void backward_impl(const Tensor& grad, const OptTensor& grad_logsumexp, const Tensor& q,
                   const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& softmax,
                   LRA_ATTENTION_OPTIONS, const OptTensor& bias, Tensor& grad_q, Tensor& grad_k,
                   Tensor& grad_v, const OptTensor& grad_bias) {
  const auto kernel = [](const auto& problem, const auto& args) {
    kernels::attention_backward(problem, args);
  };
  attention_backward_by(kernel, grad, grad_logsumexp, q, k, v, out, softmax, LRA_ATTENTION_PASS,
                        bias, grad_q, grad_k, grad_v, grad_bias);
}

// Counted in main memory, on every device.
int64_t pairs_impl(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& key_mask,
                   const OptTensor& query_mask, const OptTensor& offsets,
                   const OptTensor& key_blocks, const OptTensor& device_runs, at::IntArrayRef sizes,
                   double scale, double rate, int64_t key, const OptTensor&, bool) {
  const OptTensor runs = device_runs ? OptTensor(device_runs->cpu()) : std::nullopt;
  return kernels::count_visible_pairs(AttentionCall(q, k, v, LRA_ATTENTION_PASS).get());
}

void save_options(AutogradContext* ctx, const AttentionOptions& o) {
  ctx->saved_data["tensors"] = c10::IValue(
      std::vector<OptTensor>{o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs});
  ctx->saved_data["sizes"] = o.sizes;
  ctx->saved_data["scale"] = o.scale;
  ctx->saved_data["rate"] = o.rate;
  ctx->saved_data["key"] = o.key;
}

AttentionOptions saved_options(AutogradContext* ctx) {
  const auto tensors = ctx->saved_data["tensors"].to<std::vector<OptTensor>>();
  return {tensors[0],
          tensors[1],
          tensors[2],
          tensors[3],
          tensors[4],
          ctx->saved_data["sizes"].toIntVector(),
          ctx->saved_data["scale"].toDouble(),
          ctx->saved_data["rate"].toDouble(),
          ctx->saved_data["key"].toInt()};
}

Tensor logsumexp_of(const Tensor& softmax_2BHL, const Tensor& q, double scale) {
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  return softmax_2BHL[0] * std::abs(scale) + softmax_2BHL[1].log();
}

// Gives {out}, and of a part {out, logsumexp}.
struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& v, const OptTensor& bias, const AttentionOptions& o) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [out, softmax] = call_attention_forward(q, k, v, o, bias);
    ctx->save_for_backward({q, k, v, out, softmax, bias.value_or(Tensor())});
    ctx->set_materialize_grads(false);
    save_options(ctx, o);
    if (!o.is_part) return {out};
    return {out, logsumexp_of(softmax, q, o.scale)};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    refuse_second_derivative("lra::attention");
    const auto s = ctx->get_saved_variables();
    const auto like = [](const Tensor& t) {
      return t.defined() ? at::empty(t.sizes(), t.options()) : Tensor();
    };
    const AttentionInputGradients to{like(s[0]), like(s[1]), like(s[2]), like(s[5])};
    const Tensor grad_logsumexp = grads.size() > 1 ? grads[1] : Tensor();
    call_attention_backward({grads[0], grad_logsumexp}, s[0], s[1], s[2], s[3], s[4],
                            saved_options(ctx), optional_tensor(s[5]), to);
    return {to.q, to.k, to.v, to.bias, Tensor()};
  }
};

struct PackedAttentionFunction : torch::autograd::Function<PackedAttentionFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& qkv, const AttentionOptions& o) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [out, softmax] =
        call_attention_forward(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), o);
    ctx->save_for_backward({qkv, out, softmax});
    save_options(ctx, o);
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    refuse_second_derivative("lra::attention");
    const auto s = ctx->get_saved_variables();
    Tensor grad = at::empty(s[0].sizes(), s[0].options());
    call_attention_backward({grads[0], {}}, s[0].select(2, 0), s[0].select(2, 1), s[0].select(2, 2),
                            s[1], s[2], saved_options(ctx), {},
                            {grad.select(2, 0), grad.select(2, 1), grad.select(2, 2), {}});
    return {grad, Tensor()};
  }
};

AttentionOptions options_of(LRA_ATTENTION_OPTIONS) {
  return {key_mask, query_mask, offsets, key_blocks, runs, sizes.vec(), scale, rate, key};
}

AttentionOptions part_options_of(LRA_ATTENTION_OPTIONS) {
  AttentionOptions o = options_of(LRA_ATTENTION_PASS);
  o.is_part = true;
  return o;
}

Tensor attention_op(const Tensor& q, const Tensor& k, const Tensor& v, LRA_ATTENTION_OPTIONS,
                    const OptTensor& bias) {
  return std::get<0>(call_attention_forward(q, k, v, options_of(LRA_ATTENTION_PASS), bias));
}

Tensor attention_op_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                             LRA_ATTENTION_OPTIONS, const OptTensor& bias) {
  return AttentionFunction::apply(q, k, v, bias, options_of(LRA_ATTENTION_PASS))[0];
}

std::tuple<Tensor, Tensor> logsumexp_op(const Tensor& q, const Tensor& k, const Tensor& v,
                                        LRA_ATTENTION_OPTIONS, const OptTensor& bias) {
  auto [out, softmax] = call_attention_forward(q, k, v, part_options_of(LRA_ATTENTION_PASS), bias);
  return {out, logsumexp_of(softmax, q, scale)};
}

std::tuple<Tensor, Tensor> logsumexp_op_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                                                 LRA_ATTENTION_OPTIONS, const OptTensor& bias) {
  const auto results = AttentionFunction::apply(q, k, v, bias, part_options_of(LRA_ATTENTION_PASS));
  return {results[0], results[1]};
}

Tensor packed_op(const Tensor& qkv, LRA_ATTENTION_OPTIONS) {
  return attention_op(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), LRA_ATTENTION_PASS, {});
}

Tensor packed_op_autograd(const Tensor& qkv, LRA_ATTENTION_OPTIONS) {
  return PackedAttentionFunction::apply(qkv, options_of(LRA_ATTENTION_PASS));
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionPattern& pattern,
                 const AttentionMask& mask, const AttentionDropout& dropout, double scale,
                 const Tensor& bias) {
  static const auto op =
      find_op<Tensor(const Tensor&, const Tensor&, const Tensor&, LRA_ATTENTION_OPTION_TYPES,
                     const OptTensor&)>("lra::attention");
  const AttentionOptions o = attention_options(pattern, mask, dropout, scale);
  return op.call(q, k, v, o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs, o.sizes,
                 o.scale, o.rate, o.key, optional_tensor(bias));
}

PartialAttention partial_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const AttentionPattern& pattern, const AttentionMask& mask,
                                   const AttentionDropout& dropout, double scale) {
  static const auto op = find_op<std::tuple<Tensor, Tensor>(
      const Tensor&, const Tensor&, const Tensor&, LRA_ATTENTION_OPTION_TYPES, const OptTensor&)>(
      "lra::attention_with_logsumexp");
  const AttentionOptions o = attention_options(pattern, mask, dropout, scale);
  auto [out, logsumexp] = op.call(q, k, v, o.key_mask, o.query_mask, o.offsets, o.key_blocks,
                                  o.runs, o.sizes, o.scale, o.rate, o.key, {});
  return {out, logsumexp};
}

Tensor packed_attention(const Tensor& qkv, const AttentionPattern& pattern,
                        const AttentionMask& mask, const AttentionDropout& dropout, double scale) {
  static const auto op =
      find_op<Tensor(const Tensor&, LRA_ATTENTION_OPTION_TYPES)>("lra::packed_attention");
  const AttentionOptions o = attention_options(pattern, mask, dropout, scale);
  return op.call(qkv, o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs, o.sizes, o.scale,
                 o.rate, o.key);
}

AttentionPattern diagonal_pattern(int64_t length, int64_t block) {
  const int64_t num_blocks = (length + block - 1) / block;
  return {.offsets = at::arange(num_blocks + 1, at::kLong),
          .key_blocks = at::arange(num_blocks, at::kInt),
          .query_block = block,
          .key_block = block};
}

#define LRA_ATTENTION_SCHEMA                                                       \
  "Tensor? key_mask=None, Tensor? query_mask=None, Tensor? offsets=None, Tensor? " \
  "key_blocks=None, Tensor? runs=None, "                                           \
  "int[] sizes=[0, 0, -1, -1], float scale=0.0, float dropout=0.0, int key=0"

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, " LRA_ATTENTION_SCHEMA
        ", Tensor? bias=None) -> Tensor");
  m.def("attention_with_logsumexp(Tensor q, Tensor k, Tensor v, " LRA_ATTENTION_SCHEMA
        ", Tensor? bias=None) -> (Tensor, Tensor)");
  m.def("packed_attention(Tensor qkv, " LRA_ATTENTION_SCHEMA ") -> Tensor");
  m.def("attention_forward(Tensor q, Tensor k, Tensor v, " LRA_ATTENTION_SCHEMA
        ", Tensor? bias=None, bool is_part=False) -> (Tensor, Tensor)");
  // Takes what attention_forward takes.
  m.def("attention_pairs(Tensor q, Tensor k, Tensor v, " LRA_ATTENTION_SCHEMA
        ", Tensor? bias=None, bool is_part=False) -> int");
  m.def(
      "attention_backward(Tensor grad, Tensor? grad_logsumexp, Tensor q, Tensor k, Tensor v, "
      "Tensor out, Tensor softmax, Tensor? key_mask, Tensor? query_mask, Tensor? offsets, "
      "Tensor? key_blocks, Tensor? runs, int[] sizes, float scale, float dropout, int key, "
      "Tensor? bias, Tensor(a!) grad_q, Tensor(b!) grad_k, Tensor(c!) grad_v, "
      "Tensor(d!)? grad_bias) -> ()");
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("attention", attention_op);
  m.impl("attention_with_logsumexp", logsumexp_op);
  m.impl("packed_attention", packed_op);
  m.impl("attention_pairs", pairs_impl);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("attention_forward", forward_impl);
  m.impl("attention_backward", backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("attention", attention_op_autograd);
  m.impl("attention_with_logsumexp", logsumexp_op_autograd);
  m.impl("packed_attention", packed_op_autograd);
}

}  // namespace lra::ops
