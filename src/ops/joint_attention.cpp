// Attention to the keys of several calls of the operator, in one softmax.
//
// Forward, the parts are merged by their logsumexp. Backward, a weight of the joint softmax is
// exp(score - joint logsumexp), whichever part its key is in: the kernel's pass over a part, given
// the joint output and logsumexp, is that part's share of the gradient. So no part's own output is
// kept, and nothing has to pass through the merging.
#include "ops/attention_calls.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Call {
  size_t k = 0, v = 0;  // places in the list of tensors
  Tensor rows;          // of these; undefined: all
  AttentionOptions options;
};

// A capsule, as a saved value must be.
struct Calls : torch::CustomClassHolder {
  std::vector<Call> list;
};
using CallsPtr = c10::intrusive_ptr<Calls>;

Tensor chosen(const Tensor& t, const Tensor& rows) {
  return rows.defined() ? t.index_select(1, rows) : t;
}

// log(exp(a) + exp(b)). The library's logaddexp gives other bits where a vector ends, which is
// elsewhere with other numbers of threads.
Tensor log_of_sum(const Tensor& a, const Tensor& b) {
  const Tensor most = at::maximum(a, b);
  return most + (a - b).masked_fill_(most.isinf(), 0).abs_().neg_().exp_().log1p_();
}

// Adds the keys of `part` to the softmax of `all`; writes over all.out_BLHE.
void merge(PartialAttention& all, const PartialAttention& part) {
  const Tensor joint_BHL = log_of_sum(all.logsumexp_BHL, part.logsumexp_BHL);
  // Where neither has seen a key, both outputs are 0.
  const Tensor weight_BHL =
      (part.logsumexp_BHL - joint_BHL).exp_().masked_fill_(joint_BHL.isinf(), 0);
  all.out_BLHE.lerp_(part.out_BLHE, beside(weight_BHL.transpose(1, 2).unsqueeze(-1), all.out_BLHE));
  all.logsumexp_BHL = joint_BHL;
}

// Adds the gradient of the chosen rows of `input` to `sum`, which is undefined before the first.
void add_gradient(Tensor& sum, const Tensor& grad, const Tensor& rows, const Tensor& input) {
  if (rows.defined()) {
    if (!sum.defined()) sum = at::zeros(input.sizes(), input.options());
    sum.index_add_(1, rows, grad);
  } else if (sum.defined()) {
    sum.add_(grad);
  } else {
    sum = grad;
  }
}

struct JointAttentionFunction : torch::autograd::Function<JointAttentionFunction> {
  // Where q, the output and its logsumexp are among the saved tensors; keys and values follow.
  enum Saved : size_t { kQ, kOut, kLogsumexp, kFirst };

  static Tensor forward(AutogradContext* ctx, const Tensor& q, at::TensorList tensors,
                        const CallsPtr& calls) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    PartialAttention joint;
    for (const Call& call : calls->list) {
      auto [out, logsumexp] = call_attention_forward(
          q, chosen(tensors[call.k], call.rows), chosen(tensors[call.v], call.rows), call.options);
      const PartialAttention part{out, logsumexp};
      if (joint.out_BLHE.defined()) {
        merge(joint, part);
      } else {
        joint = part;
      }
    }
    variable_list saved = {q, joint.out_BLHE, joint.logsumexp_BHL};
    saved.insert(saved.end(), tensors.begin(), tensors.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["calls"] = c10::IValue::make_capsule(calls);
    return joint.out_BLHE;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    refuse_second_derivative("lra::attention");
    const auto saved = ctx->get_saved_variables();
    const auto calls =
        c10::static_intrusive_pointer_cast<Calls>(ctx->saved_data["calls"].toCapsule());
    const Tensor& q = saved[kQ];
    Tensor grad_q;
    variable_list others(saved.size() - kFirst);
    for (const Call& call : calls->list) {
      const Tensor &all_k = saved[kFirst + call.k], &all_v = saved[kFirst + call.v];
      const Tensor k = chosen(all_k, call.rows), v = chosen(all_v, call.rows);
      const auto like = [](const Tensor& t) { return at::empty(t.sizes(), t.options()); };
      const AttentionInputGradients to{like(q), like(k), like(v), {}};
      call_attention_backward({grads[0], {}}, q, k, v, saved[kOut], saved[kLogsumexp], call.options,
                              {}, to);
      add_gradient(grad_q, to.q, {}, q);
      add_gradient(others[call.k], to.k, call.rows, all_k);
      add_gradient(others[call.v], to.v, call.rows, all_v);
    }
    variable_list all = {grad_q};
    all.insert(all.end(), others.begin(), others.end());
    all.emplace_back();
    return all;
  }
};

// The place of the tensor in the list; a new one is added.
size_t place_of(const Tensor& t, variable_list& tensors) {
  const auto same = [&](const Tensor& other) { return other.is_same(t); };
  const auto found = std::find_if(tensors.begin(), tensors.end(), same);
  const auto place = static_cast<size_t>(found - tensors.begin());
  if (found == tensors.end()) tensors.push_back(t);
  return place;
}

}  // namespace

Tensor joint_attention(const Tensor& q, const std::vector<AttentionPart>& parts) {
  LRA_CHECK(!parts.empty());
  const AttentionPart& first = parts[0];
  if (parts.size() == 1 && !first.rows.defined()) {
    return attention(q, first.k_BSHE, first.v_BSHE, first.pattern, first.mask, first.dropout);
  }
  variable_list tensors;
  const auto calls = c10::make_intrusive<Calls>();
  for (const AttentionPart& part : parts) {
    calls->list.push_back({.k = place_of(part.k_BSHE, tensors),
                           .v = place_of(part.v_BSHE, tensors),
                           .rows = part.rows,
                           .options = attention_options(part.pattern, part.mask, part.dropout, 0)});
  }
  return JointAttentionFunction::apply(q, at::TensorList(tensors), calls);
}

}  // namespace lra::ops
