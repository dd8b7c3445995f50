// Attention to the keys of several calls of the operator, in one softmax.
//
// Forward, the parts are merged by their largest scores and the sums relative to these. Backward, a
// weight of the joint softmax is exp(score - largest) / sum with the joint two, whichever part its
// key is in: the kernel's pass over a part, given the joint output, largest scores and sums, is
// that part's share of the gradient. So no part's own output is kept, and nothing has to pass
// through the merging.
#include "ops/attention/attention_arguments.h"
#include "ops/composed.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

struct Call {
  size_t k = 0, v = 0;           // places in the list of tensors
  PeriodicRows rows;             // of these
  AttentionArguments arguments;  // but for q, k and v

  AttentionArguments of(const Tensor& q, const Tensor& all_k, const Tensor& all_v) const {
    AttentionArguments a = arguments;
    a.in.q = q;
    a.in.k = rows.of(all_k);
    a.in.v = rows.of(all_v);
    return a;
  }
};

// A capsule, as a saved value must be.
struct Calls : torch::CustomClassHolder {
  std::vector<Call> list;
};
using CallsPtr = c10::intrusive_ptr<Calls>;

// The logsumexp of a row that sees no key: far below every other, yet finite.
constexpr double kUnseen = -1e30;

// Adds the keys of a part to the softmax of `out`; writes over it.
void merge(Tensor& out, Tensor& softmax, const Tensor& part_out, const Tensor& part_softmax,
           double scale) {
  Tensor largest_BHL = softmax[0], sum_BHL = softmax[1];
  const Tensor joint_BHL = at::maximum(largest_BHL, part_softmax[0]);
  const Tensor is_unseen = joint_BHL.eq(-INFINITY);  // by either: then all are 0
  const auto factor = [&](const Tensor& largest) {
    return (largest - joint_BHL).mul_(scale).masked_fill_(is_unseen, 0).exp_();
  };
  const Tensor added_BHL = factor(part_softmax[0]).mul_(part_softmax[1]);
  sum_BHL.mul_(factor(largest_BHL)).add_(added_BHL);
  largest_BHL.copy_(joint_BHL);
  const Tensor weight_BHL = (added_BHL / sum_BHL).masked_fill_(sum_BHL.eq(0), 0);
  out.lerp_(part_out, beside(weight_BHL.transpose(1, 2).unsqueeze(-1), out));
}

// Adds the gradient of the chosen rows of `input` to `sum`, which is undefined before the first.
void add_gradient(Tensor& sum, const Tensor& grad, const PeriodicRows& rows, const Tensor& input) {
  if (rows.period > 0) {
    if (!sum.defined()) sum = at::zeros(input.sizes(), input.options());
    rows.add_to(sum, grad);
  } else if (sum.defined()) {
    sum.add_(grad);
  } else {
    sum = grad;
  }
}

// Composed version; `in` holds q, then all keys and values.
Tensor composed_joint_attention(const variable_list& in, const std::vector<Call>& calls) {
  variable_list outs, sums;
  for (const Call& call : calls) {
    const auto part = composed_attention(call.of(in[0], in[1 + call.k], in[1 + call.v]));
    outs.push_back(part.out_BLHE);
    sums.push_back(part.logsumexp_BHL.masked_fill(part.logsumexp_BHL.eq(-INFINITY), kUnseen));
  }
  const Tensor weights = at::stack(sums).softmax(0).transpose(2, 3).unsqueeze(-1);
  return (at::stack(outs) * weights).sum(0);
}

struct JointAttentionFunction : torch::autograd::Function<JointAttentionFunction> {
  // Positions of q, the output and its softmax among the saved tensors; keys and values follow.
  enum Saved : size_t { kQ, kOut, kSoftmax, kFirst };

  static Tensor forward(AutogradContext* ctx, const Tensor& q, at::TensorList tensors,
                        const CallsPtr& calls) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    AttentionResults joint;
    for (const Call& call : calls->list) {
      const AttentionArguments a = call.of(q, tensors[call.k], tensors[call.v]);
      const AttentionResults part = attention_forward(a);
      if (joint.out.defined()) {
        dispatch<"lra::merge_attention_", merge>(joint.out, joint.softmax, part.out, part.softmax,
                                                 a.effective_scale());
      } else {
        joint = part;
      }
    }
    variable_list saved = {q, joint.out, joint.softmax};
    saved.insert(saved.end(), tensors.begin(), tensors.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["calls"] = c10::IValue::make_capsule(calls);
    return joint.out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const auto calls =
        c10::static_intrusive_pointer_cast<Calls>(ctx->saved_data["calls"].toCapsule());
    if (at::GradMode::is_enabled()) {
      variable_list inputs(saved.begin() + kFirst - 1, saved.end());
      inputs[0] = saved[kQ];
      const auto out = [&](const auto& in) {
        return variable_list{composed_joint_attention(in, calls->list)};
      };
      return composed_gradients("lra::attention", out, inputs, grads, inputs.size() + 1);
    }
    const Tensor& q = saved[kQ];
    Tensor grad_q;
    variable_list others(saved.size() - kFirst);
    for (const Call& call : calls->list) {
      const Tensor &all_k = saved[kFirst + call.k], &all_v = saved[kFirst + call.v];
      const AttentionArguments a = call.of(q, all_k, all_v);
      const auto like = [](const Tensor& t) { return at::empty(t.sizes(), t.options()); };
      const AttentionInputs to{like(q), like(a.in.k), like(a.in.v), {}};
      attention_backward(a, {grads[0], {}, saved[kOut], saved[kSoftmax], to});
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

// Chosen rows in the periods that the length holds, and behind them.
struct Periods {
  Periods(const PeriodicRows& rows, int64_t length)
      : whole(length / rows.period * rows.period),
        rest(std::clamp(length - whole, rows.first, rows.end) - rows.first) {}
  int64_t whole, rest;
};

}  // namespace

Tensor PeriodicRows::of(const Tensor& t) const {
  if (period == 0) return t;
  const Periods p(*this, t.size(1));
  const Tensor rows = t.narrow(1, 0, p.whole)
                          .unflatten(1, {p.whole / period, period})
                          .narrow(2, first, end - first)
                          .flatten(1, 2);
  return p.rest == 0 ? rows : at::cat({rows, t.narrow(1, p.whole + first, p.rest)}, 1);
}

void PeriodicRows::add_to(const Tensor& sum, const Tensor& t) const {
  const Periods p(*this, sum.size(1));
  const int64_t count = p.whole / period * (end - first);
  sum.narrow(1, 0, p.whole)
      .unflatten(1, {p.whole / period, period})
      .narrow(2, first, end - first)
      .add_(t.narrow(1, 0, count).unflatten(1, {p.whole / period, end - first}));
  if (p.rest > 0) sum.narrow(1, p.whole + first, p.rest).add_(t.narrow(1, count, p.rest));
}

Tensor joint_attention(const Tensor& q, const std::vector<AttentionPart>& parts) {
  LRA_CHECK(!parts.empty());
  const AttentionPart& first = parts[0];
  if (parts.size() == 1 && first.rows.period == 0) {
    return attention(q, first.k_BSHE, first.v_BSHE, first.pattern, first.mask, first.dropout);
  }
  variable_list tensors;
  const auto calls = c10::make_intrusive<Calls>();
  for (const AttentionPart& part : parts) {
    calls->list.push_back({.k = place_of(part.k_BSHE, tensors),
                           .v = place_of(part.v_BSHE, tensors),
                           .rows = part.rows,
                           .arguments = {.pattern = part.pattern,
                                         .mask = part.mask,
                                         .dropout = part.dropout,
                                         .is_part = true}});
  }
  return JointAttentionFunction::apply(q, at::TensorList(tensors), calls);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "merge_attention_(Tensor(a!) out, Tensor(b!) softmax, Tensor part_out, Tensor part_softmax, "
      "float scale) -> ()");
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) { m.impl("merge_attention_", merge); }

}  // namespace lra::ops
