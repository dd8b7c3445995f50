// Composed versions of operators, written with the library's differentiable operators.
// `m.def(schema, composed)` by itself makes a complete operator, for every device, dtype and order
// of derivative, and for tracing without data. An operator that also has fused code registers it
// per device (m.impl under CPU, and under Autograd its first gradient); elsewhere, and for second
// derivatives, the composed version still serves. Tests compare the fused code with it.
#pragma once

#include "ops/dispatch.h"

namespace lra::ops {

// The gradients of composed(inputs), a list of results, for `grads`, in differentiable form, as the
// backward pass of a fused operator returns them under create_graph. `inputs` are the tensors of
// its forward pass as they came in, saved; the result has num_arguments places, as backward() must
// return, and is undefined for inputs that need no gradient. Throws lra::Error for bfloat16, whose
// parameters are rounded to other tensors on their way in.
template <typename Composed>
variable_list composed_gradients(const char* op, const Composed& composed,
                                 const variable_list& inputs, const variable_list& grads,
                                 size_t num_arguments) {
  if (inputs[0].scalar_type() == at::kBFloat16) {
    throw Error({.where = op,
                 .what = "has no second derivative in bfloat16",
                 .expected = "float32 or float64 with create_graph",
                 .advice = ""});
  }
  // Aliases: a path from one input through another is not part of this operator.
  variable_list aliases = inputs, wanted;
  std::vector<size_t> places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    aliases[i] = at::alias(inputs[i]);
    wanted.push_back(aliases[i]);
    places.push_back(i);
  }
  variable_list results, of_results;
  const variable_list all = composed(aliases);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !all[i].requires_grad()) continue;
    results.push_back(all[i]);
    of_results.push_back(grads[i]);
  }
  const auto found = torch::autograd::grad(results, wanted, of_results,
                                           /*retain_graph=*/true, /*create_graph=*/true,
                                           /*allow_unused=*/true);
  variable_list gradients(num_arguments);
  for (size_t n = 0; n < places.size(); ++n) gradients[places[n]] = found[n];
  return gradients;
}

// The same without a graph: the backward pass of a fused operator on devices without kernels for
// it. Gradients of all inputs that exist, undefined where they have none.
template <typename Composed>
variable_list composed_backward_pass(const Composed& composed, const variable_list& inputs,
                                     const variable_list& grads) {
  const at::AutoGradMode with_gradients(true);
  variable_list leaves, wanted;
  for (const Tensor& t : inputs) {
    leaves.push_back(t.defined() ? t.detach().set_requires_grad(true) : t);
    if (t.defined()) wanted.push_back(leaves.back());
  }
  const auto found = torch::autograd::grad(composed(leaves), wanted, grads);
  variable_list gradients(inputs.size());
  for (size_t i = 0, next = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) gradients[i] = found[next++];
  }
  return gradients;
}

// t [B, L, D], 0 where the mask, uint8 [B, L], is 0: filled, not multiplied by 0, since padding may
// hold anything.
inline Tensor without_padding(const Tensor& t, const MaybeTensor& mask) {
  return mask ? t.masked_fill(mask->eq(0).unsqueeze(2), 0) : t;
}

// [1 or 2, ...], real and perhaps imaginary parts, as complex numbers in double precision: powers
// of poles near 1 need it.
inline Tensor wide_complex(const Tensor& planes) {
  const Tensor wide = planes.to(at::kDouble);
  return at::complex(wide[0], planes.size(0) == 2 ? wide[1] : at::zeros_like(wide[0]));
}

}  // namespace lra::ops
