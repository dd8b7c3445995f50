#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/visibility.h"
#include "ops/dispatch.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptTensor = std::optional<Tensor>;

// Everything besides q, k and v, in the order of the schemas. `sizes` is {query_block, key_block,
// left, right}.
struct Options {
  OptTensor key_mask, query_mask, offsets, key_blocks, runs;
  std::vector<int64_t> sizes;
  double scale = 0, rate = 0;
  int64_t key = 0;
};

#define LRA_ATTENTION_OPTION_TYPES                                                          \
  const OptTensor&, const OptTensor&, const OptTensor&, const OptTensor&, const OptTensor&, \
      at::IntArrayRef, double, double, int64_t
#define LRA_ATTENTION_OPTIONS                                                                  \
  const OptTensor &key_mask, const OptTensor &query_mask, const OptTensor &offsets,            \
      const OptTensor &key_blocks, const OptTensor &runs, at::IntArrayRef sizes, double scale, \
      double rate, int64_t key
#define LRA_ATTENTION_PASS key_mask, query_mask, offsets, key_blocks, runs, sizes, scale, rate, key

using Forward = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                           LRA_ATTENTION_OPTION_TYPES, const OptTensor&);
using Backward = void(const Tensor&, const OptTensor&, const Tensor&, const Tensor&, const Tensor&,
                      const Tensor&, const Tensor&, LRA_ATTENTION_OPTION_TYPES, const OptTensor&,
                      Tensor&, Tensor&, Tensor&, const OptTensor&);

Tensor last_contiguous(const Tensor& t) {
  return t.stride(-1) == 1 || t.size(-1) == 1 ? t : t.contiguous();
}

OptTensor last_contiguous(const OptTensor& t) { return t ? OptTensor(last_contiguous(*t)) : t; }

template <typename T>
kernels::HeadView<const T> input_view(const Tensor& t) {
  return {const_data<T>(t), t.stride(0), t.stride(2), t.stride(1)};
}

template <typename T>
kernels::HeadView<T> output_view(const Tensor& t) {
  return {mutable_data<T>(t), t.stride(0), t.stride(2), t.stride(1)};
}

// Undefined data without a bias. `shape` is the problem's.
template <typename T, typename U>
kernels::ScoreBias<T> bias_view(const OptTensor& bias, const kernels::AttentionShape& shape) {
  if (!bias) return {};
  LRA_CHECK(bias->scalar_type() == c10::CppTypeToScalarType<U>::value);
  LRA_CHECK(bias->sizes() == at::IntArrayRef({shape.heads, shape.query_length, shape.key_length}));
  LRA_CHECK(bias->stride(2) == 1 || bias->size(2) == 1);
  return {bias->data_ptr<U>(), bias->stride(0), bias->stride(1)};
}

// The kernel's description of the problem; keeps the block lists alive.
class Problem {
 public:
  Problem(const Tensor& q, const Tensor& k, const Tensor& v, LRA_ATTENTION_OPTIONS) {
    LRA_CHECK_EQ(q.dim(), 4);
    LRA_CHECK_EQ(k.dim(), 4);
    LRA_CHECK(v.sizes() == k.sizes());
    for (const int64_t axis : {0, 2, 3}) LRA_CHECK_EQ(k.size(axis), q.size(axis));
    LRA_CHECK(k.scalar_type() == q.scalar_type() && v.scalar_type() == q.scalar_type());
    LRA_CHECK_EQ(sizes.size(), size_t{4});
    problem_.shape = {q.size(0), q.size(2), q.size(1), k.size(1), q.size(3)};
    problem_.scale = scale != 0 ? scale : 1.0 / std::sqrt(static_cast<double>(q.size(3)));
    problem_.dropout_rate = rate;
    problem_.dropout_key = static_cast<uint64_t>(key);
    problem_.visible.left = sizes[2];
    problem_.visible.right = sizes[3];
    check_mask(key_mask, q.size(0), k.size(1));
    check_mask(query_mask, q.size(0), q.size(1));
    if (key_mask) problem_.visible.key_mask = key_mask->const_data_ptr<uint8_t>();
    if (query_mask) problem_.visible.query_mask = query_mask->const_data_ptr<uint8_t>();
    LRA_CHECK(offsets.has_value() == key_blocks.has_value());
    if (offsets) set_blocks(*offsets, key_blocks.value(), sizes);
    if (runs) set_runs(*runs);
  }
  const kernels::AttentionProblem& get() const { return problem_; }

 private:
  void set_blocks(const Tensor& offsets, const Tensor& key_blocks, at::IntArrayRef sizes) {
    LRA_CHECK(offsets.is_contiguous() && key_blocks.is_contiguous());
    LRA_CHECK(offsets.scalar_type() == at::kLong && key_blocks.scalar_type() == at::kInt);
    LRA_CHECK_GE(sizes[0], 1);
    LRA_CHECK_GE(sizes[1], 1);
    LRA_CHECK_GE(offsets.numel(), 1);
    LRA_CHECK_EQ(offsets.const_data_ptr<int64_t>()[offsets.numel() - 1], key_blocks.numel());
    const auto blocks_in = [](int64_t length, int64_t size) { return (length + size - 1) / size; };
    const int64_t query_blocks = blocks_in(problem_.shape.query_length, sizes[0]);
    const int64_t rows = offsets.numel() - 1;
    LRA_CHECK_EQ(rows % query_blocks, 0);
    const auto* first = offsets.const_data_ptr<int64_t>();
    LRA_CHECK(first[0] == 0 && std::is_sorted(first, first + offsets.numel()));
    const auto* block = key_blocks.const_data_ptr<int32_t>();
    const int64_t count = blocks_in(problem_.shape.key_length, sizes[1]);
    LRA_CHECK(std::all_of(block, block + key_blocks.numel(),
                          [&](int32_t b) { return 0 <= b && b < count; }));
    blocks_ = {sizes[0], sizes[1], rows / query_blocks, offsets.const_data_ptr<int64_t>(),
               key_blocks.const_data_ptr<int32_t>()};
    problem_.visible.blocks = &blocks_;
  }
  void set_runs(const Tensor& runs) {
    LRA_CHECK(runs.scalar_type() == at::kInt && runs.is_contiguous() && runs.dim() == 3);
    LRA_CHECK_EQ(runs.size(0), problem_.shape.batch * problem_.shape.heads);
    LRA_CHECK(runs.size(1) >= 3 && runs.size(1) % 3 == 0);
    runs_ = {runs.const_data_ptr<int32_t>(), runs.size(2), runs.size(1) / 3 - 1};
    problem_.visible.runs = &runs_;
  }
  kernels::AttentionProblem problem_;
  kernels::BlockLists blocks_;
  kernels::SortedRuns runs_;
};

std::tuple<Tensor, Tensor> forward_impl(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                                        LRA_ATTENTION_OPTIONS, const OptTensor& bias_in) {
  const OptTensor bias = last_contiguous(bias_in);
  const Tensor q = last_contiguous(q_in), k = last_contiguous(k_in), v = last_contiguous(v_in);
  const Problem problem(q, k, v, LRA_ATTENTION_PASS);
  Tensor out = at::empty(q.sizes(), q.options());
  Tensor logsumexp = at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(wide_type(q)));
  with_float_type(q, "lra::attention", [&](auto zero) {
    using T = decltype(zero);
    using W = kernels::Wide<T>;
    kernels::attention_forward<T>(
        problem.get(),
        {input_view<T>(q), input_view<T>(k), input_view<T>(v), output_view<T>(out),
         logsumexp.mutable_data_ptr<W>(), bias_view<const W, W>(bias, problem.get().shape)});
  });
  return {out, logsumexp};
}

void backward_impl(const Tensor& grad_in, const OptTensor& grad_logsumexp_in, const Tensor& q_in,
                   const Tensor& k_in, const Tensor& v_in, const Tensor& out,
                   const Tensor& logsumexp, LRA_ATTENTION_OPTIONS, const OptTensor& bias_in,
                   Tensor& grad_q, Tensor& grad_k, Tensor& grad_v, const OptTensor& grad_bias) {
  const OptTensor bias = last_contiguous(bias_in);
  const Tensor grad = last_contiguous(grad_in);
  const Tensor grad_logsumexp = grad_logsumexp_in ? grad_logsumexp_in->contiguous() : Tensor();
  const Tensor q = last_contiguous(q_in), k = last_contiguous(k_in), v = last_contiguous(v_in);
  const Problem problem(q, k, v, LRA_ATTENTION_PASS);
  LRA_CHECK(grad.sizes() == q.sizes() && out.sizes() == q.sizes() && grad_q.sizes() == q.sizes());
  LRA_CHECK(grad_k.sizes() == k.sizes() && grad_v.sizes() == v.sizes());
  const std::vector<int64_t> rows = {q.size(0), q.size(2), q.size(1)};
  LRA_CHECK(logsumexp.sizes() == rows && logsumexp.is_contiguous());
  LRA_CHECK(!grad_logsumexp.defined() || grad_logsumexp.sizes() == rows);
  with_float_type(q, "lra::attention_backward", [&](auto zero) {
    using T = decltype(zero);
    using W = kernels::Wide<T>;
    kernels::attention_backward<T>(
        problem.get(), {input_view<T>(q), input_view<T>(k), input_view<T>(v), input_view<T>(out),
                        input_view<T>(grad), logsumexp.const_data_ptr<W>(), output_view<T>(grad_q),
                        output_view<T>(grad_k), output_view<T>(grad_v),
                        grad_logsumexp.defined() ? grad_logsumexp.const_data_ptr<W>() : nullptr,
                        bias_view<const W, W>(bias, problem.get().shape),
                        bias_view<W, W>(grad_bias, problem.get().shape)});
  });
}

int64_t pairs_impl(const Tensor& q, const Tensor& k, const Tensor& v, LRA_ATTENTION_OPTIONS,
                   const OptTensor&) {
  return kernels::count_visible_pairs(Problem(q, k, v, LRA_ATTENTION_PASS).get());
}

std::tuple<Tensor, Tensor> call_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                        const Options& o, const OptTensor& bias = {}) {
  static const auto op = find_op<Forward>("lra::attention_forward");
  return op.call(q, k, v, o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs, o.sizes,
                 o.scale, o.rate, o.key, bias);
}

struct OutputGradients {
  Tensor out, logsumexp;  // undefined: none
};

struct InputGradients {
  Tensor q, k, v, bias;  // bias may be undefined
};

void call_backward(const OutputGradients& grads, const Tensor& q, const Tensor& k, const Tensor& v,
                   const Tensor& out, const Tensor& logsumexp, const Options& o,
                   const OptTensor& bias, InputGradients to) {
  static const auto op = find_op<Backward>("lra::attention_backward");
  const Tensor grad = grads.out.defined() ? grads.out : at::zeros_like(out);
  op.call(grad, optional_tensor(grads.logsumexp), q, k, v, out, logsumexp, o.key_mask, o.query_mask,
          o.offsets, o.key_blocks, o.runs, o.sizes, o.scale, o.rate, o.key, bias, to.q, to.k, to.v,
          optional_tensor(to.bias));
}

void save_options(AutogradContext* ctx, const Options& o) {
  ctx->saved_data["tensors"] = c10::IValue(
      std::vector<OptTensor>{o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs});
  ctx->saved_data["sizes"] = o.sizes;
  ctx->saved_data["scale"] = o.scale;
  ctx->saved_data["rate"] = o.rate;
  ctx->saved_data["key"] = o.key;
}

Options saved_options(AutogradContext* ctx) {
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

// Gives {out, logsumexp}; callers that drop the second pay nothing for it.
struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& v, const OptTensor& bias, const Options& o) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [out, logsumexp] = call_forward(q, k, v, o, bias);
    ctx->save_for_backward({q, k, v, out, logsumexp, bias.value_or(Tensor())});
    ctx->set_materialize_grads(false);
    save_options(ctx, o);
    return {out, logsumexp};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    refuse_second_derivative("lra::attention");
    const auto s = ctx->get_saved_variables();
    const auto like = [](const Tensor& t) {
      return t.defined() ? at::empty(t.sizes(), t.options()) : Tensor();
    };
    const InputGradients to{like(s[0]), like(s[1]), like(s[2]), like(s[5])};
    call_backward({grads[0], grads[1]}, s[0], s[1], s[2], s[3], s[4], saved_options(ctx),
                  optional_tensor(s[5]), to);
    return {to.q, to.k, to.v, to.bias, Tensor()};
  }
};

struct PackedAttentionFunction : torch::autograd::Function<PackedAttentionFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& qkv, const Options& o) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [out, logsumexp] = call_forward(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), o);
    ctx->save_for_backward({qkv, out, logsumexp});
    save_options(ctx, o);
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    refuse_second_derivative("lra::attention");
    const auto s = ctx->get_saved_variables();
    Tensor grad = at::empty(s[0].sizes(), s[0].options());
    call_backward({grads[0], {}}, s[0].select(2, 0), s[0].select(2, 1), s[0].select(2, 2), s[1],
                  s[2], saved_options(ctx), {},
                  {grad.select(2, 0), grad.select(2, 1), grad.select(2, 2), {}});
    return {grad, Tensor()};
  }
};

Options options_of(LRA_ATTENTION_OPTIONS) {
  return {key_mask, query_mask, offsets, key_blocks, runs, sizes.vec(), scale, rate, key};
}

Tensor attention_op(const Tensor& q, const Tensor& k, const Tensor& v, LRA_ATTENTION_OPTIONS,
                    const OptTensor& bias) {
  return std::get<0>(call_forward(q, k, v, options_of(LRA_ATTENTION_PASS), bias));
}

Tensor attention_op_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                             LRA_ATTENTION_OPTIONS, const OptTensor& bias) {
  return AttentionFunction::apply(q, k, v, bias, options_of(LRA_ATTENTION_PASS))[0];
}

std::tuple<Tensor, Tensor> logsumexp_op(const Tensor& q, const Tensor& k, const Tensor& v,
                                        LRA_ATTENTION_OPTIONS, const OptTensor& bias) {
  return call_forward(q, k, v, options_of(LRA_ATTENTION_PASS), bias);
}

std::tuple<Tensor, Tensor> logsumexp_op_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                                                 LRA_ATTENTION_OPTIONS, const OptTensor& bias) {
  const auto results = AttentionFunction::apply(q, k, v, bias, options_of(LRA_ATTENTION_PASS));
  return {results[0], results[1]};
}

Tensor packed_op(const Tensor& qkv, LRA_ATTENTION_OPTIONS) {
  return attention_op(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), LRA_ATTENTION_PASS, {});
}

Tensor packed_op_autograd(const Tensor& qkv, LRA_ATTENTION_OPTIONS) {
  return PackedAttentionFunction::apply(qkv, options_of(LRA_ATTENTION_PASS));
}

Options options_of(const AttentionPattern& pattern, const AttentionMask& mask,
                   const AttentionDropout& dropout, double scale) {
  return {.key_mask = optional_tensor(mask.keys),
          .query_mask = optional_tensor(mask.queries),
          .offsets = optional_tensor(pattern.offsets),
          .key_blocks = optional_tensor(pattern.key_blocks),
          .runs = optional_tensor(pattern.runs),
          .sizes = {pattern.query_block, pattern.key_block, pattern.left, pattern.right},
          .scale = scale,
          .rate = dropout.rate,
          .key = static_cast<int64_t>(dropout.key)};
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionPattern& pattern,
                 const AttentionMask& mask, const AttentionDropout& dropout, double scale,
                 const Tensor& bias) {
  static const auto op =
      find_op<Tensor(const Tensor&, const Tensor&, const Tensor&, LRA_ATTENTION_OPTION_TYPES,
                     const OptTensor&)>("lra::attention");
  const Options o = options_of(pattern, mask, dropout, scale);
  return op.call(q, k, v, o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs, o.sizes,
                 o.scale, o.rate, o.key, optional_tensor(bias));
}

PartialAttention partial_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const AttentionPattern& pattern, const AttentionMask& mask,
                                   const AttentionDropout& dropout, double scale) {
  static const auto op = find_op<Forward>("lra::attention_with_logsumexp");
  const Options o = options_of(pattern, mask, dropout, scale);
  auto [out, logsumexp] = op.call(q, k, v, o.key_mask, o.query_mask, o.offsets, o.key_blocks,
                                  o.runs, o.sizes, o.scale, o.rate, o.key, {});
  return {out, logsumexp};
}

Tensor packed_attention(const Tensor& qkv, const AttentionPattern& pattern,
                        const AttentionMask& mask, const AttentionDropout& dropout, double scale) {
  static const auto op =
      find_op<Tensor(const Tensor&, LRA_ATTENTION_OPTION_TYPES)>("lra::packed_attention");
  const Options o = options_of(pattern, mask, dropout, scale);
  return op.call(qkv, o.key_mask, o.query_mask, o.offsets, o.key_blocks, o.runs, o.sizes, o.scale,
                 o.rate, o.key);
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
        ", Tensor? bias=None) -> (Tensor, Tensor)");
  m.def("attention_pairs(Tensor q, Tensor k, Tensor v, " LRA_ATTENTION_SCHEMA
        ", Tensor? bias=None) -> int");
  m.def(
      "attention_backward(Tensor grad, Tensor? grad_logsumexp, Tensor q, Tensor k, Tensor v, "
      "Tensor out, Tensor logsumexp, Tensor? key_mask, Tensor? query_mask, Tensor? offsets, "
      "Tensor? key_blocks, Tensor? runs, int[] sizes, float scale, float dropout, int key, "
      "Tensor? bias, Tensor(a!) grad_q, Tensor(b!) grad_k, Tensor(c!) grad_v, "
      "Tensor(d!)? grad_bias) -> ()");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("attention", attention_op);
  m.impl("attention_with_logsumexp", logsumexp_op);
  m.impl("packed_attention", packed_op);
  m.impl("attention_forward", forward_impl);
  m.impl("attention_pairs", pairs_impl);
  m.impl("attention_backward", backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("attention", attention_op_autograd);
  m.impl("attention_with_logsumexp", logsumexp_op_autograd);
  m.impl("packed_attention", packed_op_autograd);
}

}  // namespace lra::ops
