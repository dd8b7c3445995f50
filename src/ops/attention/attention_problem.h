// The arguments of the attention operators as kernels take them: views of tensors, and the problem.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "ops/attention/attention_arguments.h"
#include "ops/precision.h"

namespace lra::ops {

inline Tensor last_contiguous(const Tensor& t) {
  return t.stride(-1) == 1 || t.size(-1) == 1 ? t : t.contiguous();
}

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
kernels::ScoreBias<T> bias_view(const Tensor& bias, const kernels::AttentionShape& shape) {
  if (!bias.defined()) return {};
  LRA_CHECK(bias.scalar_type() == c10::CppTypeToScalarType<U>::value);
  if (bias.dim() == 2) {
    const int64_t distances = shape.query_length + shape.key_length - 1;
    LRA_CHECK(bias.sizes() == at::IntArrayRef({shape.heads, distances}));
    LRA_CHECK(bias.stride(1) == 1 || distances == 1);
    return {bias.data_ptr<U>() + shape.query_length - 1, bias.stride(0), -1};
  }
  LRA_CHECK(bias.sizes() == at::IntArrayRef({shape.heads, shape.query_length, shape.key_length}));
  LRA_CHECK(bias.stride(2) == 1 || bias.size(2) == 1);
  return {bias.data_ptr<U>(), bias.stride(0), bias.stride(1)};
}

// The kernel's description of the problem; refers to the tensors it is made of.
class AttentionCall {
 public:
  explicit AttentionCall(const AttentionArguments& a) {
    const Tensor &q = a.in.q, &k = a.in.k, &v = a.in.v;
    LRA_CHECK_EQ(q.dim(), 4);
    LRA_CHECK_EQ(k.dim(), 4);
    LRA_CHECK(v.dim() == 4 && v.sizes().slice(0, 3) == k.sizes().slice(0, 3));
    LRA_CHECK_GE(v.size(3), 1);
    for (const int64_t axis : {0, 2, 3}) LRA_CHECK_EQ(k.size(axis), q.size(axis));
    LRA_CHECK(k.scalar_type() == q.scalar_type() && v.scalar_type() == q.scalar_type());
    LRA_CHECK(q.size(1) >= 1 && k.size(1) >= 1);
    LRA_CHECK(k.device() == q.device() && v.device() == q.device());
    problem_.shape = {q.size(0), q.size(2), q.size(1), k.size(1), q.size(3), v.size(3)};
    problem_.weights = a.weights;
    problem_.scale = a.effective_scale();
    problem_.dropout_rate = a.dropout.rate;
    problem_.dropout_key = a.dropout.key;
    kernels::AttentionVisibility& visible = problem_.visible;
    visible.left = a.pattern.left;
    visible.right = a.pattern.right;
    visible.key_mask = mask_of(a.mask.keys, k);
    visible.query_mask = mask_of(a.mask.queries, q);
    LRA_CHECK_EQ(a.pattern.offsets.defined(), a.pattern.key_blocks.defined());
    if (a.pattern.offsets.defined()) set_blocks(a.pattern);
    if (a.pattern.runs.defined()) set_runs(a.pattern.runs);
  }
  AttentionCall(const AttentionCall&) = delete;
  AttentionCall& operator=(const AttentionCall&) = delete;

  const kernels::AttentionProblem& get() const { return problem_; }

 private:
  // Data of the mask of the rows of `t`; null without one.
  static const uint8_t* mask_of(const Tensor& mask, const Tensor& t) {
    if (!mask.defined()) return nullptr;
    LRA_CHECK(mask.device() == t.device());
    check_mask(mask, t.size(0), t.size(1));
    return mask.const_data_ptr<uint8_t>();
  }
  // Passes of kernels check the numbers in the lists.
  void set_blocks(const AttentionPattern& pattern) {
    const Tensor &offsets = pattern.offsets, &key_blocks = pattern.key_blocks;
    LRA_CHECK(offsets.is_cpu() && key_blocks.is_cpu());
    LRA_CHECK(offsets.is_contiguous() && key_blocks.is_contiguous());
    LRA_CHECK(offsets.scalar_type() == at::kLong && key_blocks.scalar_type() == at::kInt);
    LRA_CHECK_GE(pattern.query_block, 1);
    LRA_CHECK_GE(pattern.key_block, 1);
    LRA_CHECK_GE(offsets.numel(), 1);
    LRA_CHECK_EQ(offsets.const_data_ptr<int64_t>()[offsets.numel() - 1], key_blocks.numel());
    const int64_t query_blocks =
        (problem_.shape.query_length + pattern.query_block - 1) / pattern.query_block;
    const int64_t rows = offsets.numel() - 1;
    LRA_CHECK_EQ(rows % query_blocks, 0);
    blocks_ = {pattern.query_block, pattern.key_block, rows / query_blocks,
               offsets.const_data_ptr<int64_t>(), key_blocks.const_data_ptr<int32_t>()};
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

// Inputs as kernels take them.
inline AttentionArguments last_contiguous(AttentionArguments a) {
  for (Tensor* t : {&a.in.q, &a.in.k, &a.in.v}) *t = last_contiguous(*t);
  if (a.in.bias.defined()) a.in.bias = last_contiguous(a.in.bias);
  return a;
}

template <typename W>
kernels::SoftmaxRows<W> softmax_rows(const Tensor& softmax_2BHL) {
  W* largest = static_cast<W*>(softmax_2BHL.data_ptr());
  return {largest, largest + softmax_2BHL.numel() / 2};
}

// The two passes on any device: `kernel` takes the problem and kernels::AttentionForward or
// AttentionBackward of float, Bf16 or double.
template <typename Kernel>
AttentionResults attention_forward_by(const Kernel& kernel, const AttentionArguments& arguments) {
  const AttentionArguments a = last_contiguous(arguments);
  const AttentionCall call(a);
  const Tensor& q = a.in.q;
  const Tensor out = at::empty({q.size(0), q.size(1), q.size(2), a.in.v.size(3)}, q.options());
  const Tensor softmax =
      at::empty({2, q.size(0), q.size(2), q.size(1)}, q.options().dtype(wide_type(q)));
  with_float_type(q, "lra::attention", [&]<typename T>(T) {
    using W = kernels::Wide<T>;
    kernel(call.get(),
           kernels::AttentionForward<T>{
               input_view<T>(q), input_view<T>(a.in.k), input_view<T>(a.in.v), output_view<T>(out),
               softmax_rows<W>(softmax), bias_view<const W, W>(a.in.bias, call.get().shape)});
  });
  return {out, softmax};
}

// Checks that the tensors of a backward pass, except softmax, have the shapes of its forward pass.
inline void check_backward_shapes(const AttentionArguments& a,
                                  const AttentionBackwardArguments& b) {
  LRA_CHECK(b.to.q.sizes() == a.in.q.sizes() && b.to.k.sizes() == a.in.k.sizes());
  LRA_CHECK(b.to.v.sizes() == a.in.v.sizes() && b.out.sizes() == b.grad.sizes());
  LRA_CHECK(b.out.sizes().slice(0, 3) == a.in.q.sizes().slice(0, 3));
  LRA_CHECK_EQ(b.out.size(3), a.in.v.size(3));
  for (const Tensor* t : {&b.grad, &b.out, &b.to.q, &b.to.k, &b.to.v}) {
    LRA_CHECK(t->scalar_type() == a.in.q.scalar_type());
  }
}

template <typename Kernel>
void attention_backward_by(const Kernel& kernel, const AttentionArguments& arguments,
                           const AttentionBackwardArguments& b) {
  const AttentionArguments a = last_contiguous(arguments);
  const AttentionCall call(a);
  check_backward_shapes(a, b);
  const Tensor &q = a.in.q, grad = last_contiguous(b.grad);
  const Tensor grad_logsumexp =
      b.grad_logsumexp.defined() ? b.grad_logsumexp.contiguous() : b.grad_logsumexp;
  LRA_CHECK(b.softmax.dim() == 4 && b.softmax.size(0) == 2 && b.softmax.is_contiguous());
  LRA_CHECK(b.softmax.scalar_type() == wide_type(q));
  LRA_CHECK(b.softmax[0].sizes() == at::IntArrayRef({q.size(0), q.size(2), q.size(1)}));
  LRA_CHECK(!grad_logsumexp.defined() || grad_logsumexp.sizes() == b.softmax[0].sizes());
  with_float_type(q, "lra::attention_backward", [&]<typename T>(T) {
    using W = kernels::Wide<T>;
    kernel(call.get(),
           kernels::AttentionBackward<T>{
               input_view<T>(q), input_view<T>(a.in.k), input_view<T>(a.in.v), input_view<T>(b.out),
               input_view<T>(grad), softmax_rows<const W>(b.softmax), output_view<T>(b.to.q),
               output_view<T>(b.to.k), output_view<T>(b.to.v),
               grad_logsumexp.defined() ? grad_logsumexp.const_data_ptr<W>() : nullptr,
               bias_view<const W, W>(a.in.bias, call.get().shape),
               bias_view<W, W>(b.to.bias, call.get().shape)});
  });
}

}  // namespace lra::ops
