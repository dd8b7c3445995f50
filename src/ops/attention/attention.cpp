#include "ops/attention/attention.h"

#include "kernels/attention/visibility.h"
#include "ops/attention/attention_problem.h"
#include "ops/attention/dense_attention.h"
#include "ops/composed.h"

namespace lra::ops {
namespace {

Stack forward_on_cpu(Values values) {
  auto [out, softmax] = attention_forward_by(
      [](const auto& problem, const auto& args) { kernels::attention_forward(problem, args); },
      attention_arguments(values));
  return {out, softmax};
}

Stack backward_on_cpu(Values values) {
  attention_backward_by(
      [](const auto& problem, const auto& args) { kernels::attention_backward(problem, args); },
      attention_arguments(values), attention_backward_arguments(values));
  return {};
}

// Counted in main memory, on every device.
Stack count_pairs(Values values) {
  AttentionArguments a = attention_arguments(values);
  if (a.pattern.runs.defined()) a.pattern.runs = a.pattern.runs.cpu();
  return {kernels::count_visible_pairs(AttentionCall(a).get())};
}

// The part [H, L, S] of a larger table.
Tensor part_of_table(const Tensor& bias, const Tensor& q, const Tensor& k) {
  const bool is_larger =
      bias.dim() == 3 && (bias.size(1) != q.size(1) || bias.size(2) != k.size(1));
  return is_larger ? bias.narrow(1, 0, q.size(1)).narrow(2, 0, k.size(1)) : bias;
}

// Inputs from q, k, v and an optional bias, or from one tensor [B, L, 3, H, E].
AttentionInputs inputs_of(const variable_list& t) {
  if (t.size() == 1) return {t[0].select(2, 0), t[0].select(2, 1), t[0].select(2, 2), {}};
  return {t[0], t[1], t[2], t.size() > 3 ? part_of_table(t[3], t[0], t[1]) : Tensor()};
}

// Gives {out}, and of a part {out, logsumexp}.
struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static variable_list forward(AutogradContext* ctx, at::TensorList inputs, AttentionArguments a) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    a.in = inputs_of(inputs.vec());
    const auto [out, softmax] = attention_forward(a);
    variable_list saved = {out, softmax};
    saved.insert(saved.end(), inputs.begin(), inputs.end());
    ctx->save_for_backward(saved);
    ctx->set_materialize_grads(false);
    const double scale = std::abs(a.effective_scale());
    a.in = {};
    ctx->saved_data["options"] = c10::ivalue::Tuple::create(values_of(a));
    if (!a.is_part) return {out};
    return {out, softmax[0] * scale + softmax[1].log()};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &out = saved[0], &softmax = saved[1];
    const variable_list inputs(saved.begin() + 2, saved.end());
    auto a = attention_arguments(ctx->saved_data["options"].toTupleRef().elements().vec());
    if (at::GradMode::is_enabled()) {
      const auto both = [&](const auto& in) {
        a.in = inputs_of(in);
        const PartialAttention dense = composed_attention(a);
        return variable_list{dense.out_BLHE, dense.logsumexp_BHL};
      };
      return composed_gradients("lra::attention", both, inputs, grads, inputs.size() + 1);
    }
    variable_list to;
    for (const Tensor& t : inputs) to.push_back(at::empty(t.sizes(), t.options()));
    a.in = inputs_of(inputs);
    if (a.in.bias.defined() && a.in.bias.sizes() != to[3].sizes()) to[3].zero_();
    attention_backward(a, {.grad = grads[0].defined() ? grads[0] : at::zeros_like(out),
                           .grad_logsumexp = a.is_part ? grads[1] : Tensor(),
                           .out = out,
                           .softmax = softmax,
                           .to = inputs_of(to)});
    to.emplace_back();
    return to;
  }
};

variable_list differentiable(AttentionArguments a) {
  const auto [q, k, v, bias] = std::exchange(a.in, {});
  variable_list inputs = {q, k, v};
  if (bias.defined()) inputs.push_back(bias);
  return AttentionFunction::apply(at::TensorList(inputs), a);
}

// The operators that Python calls.
Stack attention_op(Values values) { return {differentiable(attention_arguments(values))[0]}; }

Stack logsumexp_op(Values values) {
  AttentionArguments a = attention_arguments(values);
  LRA_CHECK(a.weights == AttentionWeights::kSoftmax);  // others have no logsumexp
  a.is_part = true;
  const variable_list results = differentiable(a);
  return {results[0], results[1]};
}

Stack packed_op(Values values) {
  Stack all = {values[0], Tensor(), Tensor()};  // qkv in place of q
  all.insert(all.end(), values.begin() + 1, values.end());
  const AttentionArguments a = attention_arguments(all);
  const variable_list qkv = {values[0].toTensor()};
  return {AttentionFunction::apply(at::TensorList(qkv), a)[0]};
}

}  // namespace

AttentionResults attention_forward(const AttentionArguments& arguments) {
  static const auto op = find_boxed_op("lra::attention_forward");
  const Stack results = call_op(op, values_of(arguments));
  return {results[0].toTensor(), results[1].toTensor()};
}

void attention_backward(const AttentionArguments& arguments, const AttentionBackwardArguments& b) {
  static const auto op = find_boxed_op("lra::attention_backward");
  Stack values = values_of(arguments);
  const auto& to = b.to;
  for (const Tensor* t :
       {&b.grad, &b.grad_logsumexp, &b.out, &b.softmax, &to.q, &to.k, &to.v, &to.bias}) {
    values.emplace_back(optional_tensor(*t));
  }
  call_op(op, std::move(values));
}

PartialAttention composed_attention(const AttentionArguments& a) {
  if (a.pattern.runs.defined()) {
    throw Error({.where = "lra::attention",
                 .what = "has no second derivative with sorted runs",
                 .expected = "a backward pass without create_graph",
                 .advice = ""});
  }
  const auto& [q, k, v, given_bias] = a.in;
  const Tensor bias = table_of_bias(given_bias, q.size(1), k.size(1));
  const Tensor of_pattern = pattern_allows(a.pattern, q.size(2), q.size(1), k.size(1));
  const Tensor allowed = masks_allow(of_pattern.to(q.device()), a.mask);
  return {dense_attention(q, k, v, allowed, a.dropout, a.scale, bias, a.weights),
          dense_logsumexp(dense_scores(q, k, a.scale, bias), allowed)};
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionPattern& pattern,
                 const AttentionMask& mask, const AttentionDropout& dropout, double scale,
                 const Tensor& bias, AttentionWeights weights) {
  return differentiable({{q, k, v, bias}, pattern, mask, dropout, scale, weights})[0];
}

PartialAttention partial_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const AttentionPattern& pattern, const AttentionMask& mask,
                                   const AttentionDropout& dropout, double scale) {
  const variable_list results = differentiable(
      {{q, k, v, {}}, pattern, mask, dropout, scale, AttentionWeights::kSoftmax, /*is_part=*/true});
  return {results[0], results[1]};
}

Tensor packed_attention(const Tensor& qkv, const AttentionPattern& pattern,
                        const AttentionMask& mask, const AttentionDropout& dropout, double scale) {
  const variable_list inputs = {qkv};
  return AttentionFunction::apply(at::TensorList(inputs),
                                  AttentionArguments{{}, pattern, mask, dropout, scale})[0];
}

AttentionPattern diagonal_pattern(int64_t length, int64_t block) {
  const int64_t num_blocks = (length + block - 1) / block;
  return {.offsets = at::arange(num_blocks + 1, at::kLong),
          .key_blocks = at::arange(num_blocks, at::kInt),
          .query_block = block,
          .key_block = block};
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("attention(" LRA_ATTENTION_SCHEMA ") -> Tensor");
  m.def("attention_with_logsumexp(" LRA_ATTENTION_SCHEMA ") -> (Tensor, Tensor)");
  m.def("packed_attention(Tensor qkv, " LRA_ATTENTION_OPTIONS_SCHEMA ") -> Tensor");
  m.def("attention_forward(" LRA_ATTENTION_CALL_SCHEMA ") -> (Tensor, Tensor)");
  m.def("attention_pairs(" LRA_ATTENTION_CALL_SCHEMA ") -> int");
  m.def("attention_backward(" LRA_ATTENTION_CALL_SCHEMA
        ", *, Tensor grad, Tensor? grad_logsumexp, Tensor out, Tensor softmax, Tensor(a!) grad_q, "
        "Tensor(b!) grad_k, Tensor(c!) grad_v, Tensor(d!)? grad_bias) -> ()");
}

TORCH_LIBRARY_IMPL(lra, CompositeImplicitAutograd, m) {
  m.impl("attention", boxed<attention_op>());
  m.impl("attention_with_logsumexp", boxed<logsumexp_op>());
  m.impl("packed_attention", boxed<packed_op>());
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("attention_pairs", boxed<count_pairs>());
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("attention_forward", boxed<forward_on_cpu>());
  m.impl("attention_backward", boxed<backward_on_cpu>());
}

}  // namespace lra::ops
