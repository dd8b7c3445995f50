// The arguments of the attention operators as kernels take them: views of tensors, and the problem.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/attention/attention.h"
#include "ops/dispatch.h"
#include "ops/precision.h"

namespace lra::ops {

using OptTensor = std::optional<at::Tensor>;

// Everything besides q, k and v, in the order of the schemas. `sizes` is {query_block, key_block,
// left, right}. offsets and key_blocks lie in main memory on every device.
#define LRA_ATTENTION_OPTION_TYPES                                                          \
  const OptTensor&, const OptTensor&, const OptTensor&, const OptTensor&, const OptTensor&, \
      at::IntArrayRef, double, double, int64_t
#define LRA_ATTENTION_OPTIONS                                                                  \
  const OptTensor &key_mask, const OptTensor &query_mask, const OptTensor &offsets,            \
      const OptTensor &key_blocks, const OptTensor &runs, at::IntArrayRef sizes, double scale, \
      double rate, int64_t key
#define LRA_ATTENTION_PASS key_mask, query_mask, offsets, key_blocks, runs, sizes, scale, rate, key

inline at::Tensor last_contiguous(const at::Tensor& t) {
  return t.stride(-1) == 1 || t.size(-1) == 1 ? t : t.contiguous();
}

inline OptTensor last_contiguous(const OptTensor& t) {
  return t ? OptTensor(last_contiguous(*t)) : t;
}

template <typename T>
kernels::HeadView<const T> input_view(const at::Tensor& t) {
  return {const_data<T>(t), t.stride(0), t.stride(2), t.stride(1)};
}

template <typename T>
kernels::HeadView<T> output_view(const at::Tensor& t) {
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

// The kernel's description of the problem; refers to the tensors it is made of.
class AttentionCall {
 public:
  AttentionCall(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                LRA_ATTENTION_OPTIONS) {
    LRA_CHECK_EQ(q.dim(), 4);
    LRA_CHECK_EQ(k.dim(), 4);
    LRA_CHECK(v.sizes() == k.sizes());
    for (const int64_t axis : {0, 2, 3}) LRA_CHECK_EQ(k.size(axis), q.size(axis));
    LRA_CHECK(k.scalar_type() == q.scalar_type() && v.scalar_type() == q.scalar_type());
    LRA_CHECK(q.size(1) >= 1 && k.size(1) >= 1);
    LRA_CHECK(k.device() == q.device() && v.device() == q.device());
    for (const OptTensor* t : {&key_mask, &query_mask}) {
      LRA_CHECK(!*t || (*t)->device() == q.device());
    }
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
  AttentionCall(const AttentionCall&) = delete;
  AttentionCall& operator=(const AttentionCall&) = delete;

  const kernels::AttentionProblem& get() const { return problem_; }

 private:
  void set_blocks(const at::Tensor& offsets, const at::Tensor& key_blocks, at::IntArrayRef sizes) {
    LRA_CHECK(offsets.is_cpu() && key_blocks.is_cpu());
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
  void set_runs(const at::Tensor& runs) {
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

// The two passes on any device: `kernel` takes the problem and kernels::AttentionForward or
// AttentionBackward of float, Bf16 or double.
//
// What a forward pass leaves of its softmax is one tensor [2, B, H, L] in the type that sums are
// held in: the largest scores, and the sums relative to them.
template <typename W>
kernels::SoftmaxRows<W> softmax_rows(const at::Tensor& softmax) {
  W* largest = static_cast<W*>(softmax.data_ptr());
  return {largest, largest + softmax.numel() / 2};
}

template <typename Kernel>
std::tuple<at::Tensor, at::Tensor> attention_forward_by(
    const Kernel& kernel, const at::Tensor& q_in, const at::Tensor& k_in, const at::Tensor& v_in,
    LRA_ATTENTION_OPTIONS, const OptTensor& bias_in) {
  using at::Tensor;
  const OptTensor bias = last_contiguous(bias_in);
  const Tensor q = last_contiguous(q_in), k = last_contiguous(k_in), v = last_contiguous(v_in);
  const AttentionCall call(q, k, v, LRA_ATTENTION_PASS);
  Tensor out = at::empty(q.sizes(), q.options());
  Tensor softmax = at::empty({2, q.size(0), q.size(2), q.size(1)}, q.options().dtype(wide_type(q)));
  with_float_type(q, "lra::attention", [&](auto zero) {
    using T = decltype(zero);
    using W = kernels::Wide<T>;
    kernel(call.get(),
           kernels::AttentionForward<T>{input_view<T>(q), input_view<T>(k), input_view<T>(v),
                                        output_view<T>(out), softmax_rows<W>(softmax),
                                        bias_view<const W, W>(bias, call.get().shape)});
  });
  return {out, softmax};
}

template <typename Kernel>
void attention_backward_by(const Kernel& kernel, const at::Tensor& grad_in,
                           const OptTensor& grad_logsumexp_in, const at::Tensor& q_in,
                           const at::Tensor& k_in, const at::Tensor& v_in, const at::Tensor& out,
                           const at::Tensor& softmax, LRA_ATTENTION_OPTIONS,
                           const OptTensor& bias_in, at::Tensor& grad_q, at::Tensor& grad_k,
                           at::Tensor& grad_v, const OptTensor& grad_bias) {
  using at::Tensor;
  const OptTensor bias = last_contiguous(bias_in);
  const Tensor grad = last_contiguous(grad_in);
  const Tensor grad_logsumexp = grad_logsumexp_in ? grad_logsumexp_in->contiguous() : Tensor();
  const Tensor q = last_contiguous(q_in), k = last_contiguous(k_in), v = last_contiguous(v_in);
  const AttentionCall call(q, k, v, LRA_ATTENTION_PASS);
  LRA_CHECK(grad.sizes() == q.sizes() && out.sizes() == q.sizes() && grad_q.sizes() == q.sizes());
  LRA_CHECK(grad_k.sizes() == k.sizes() && grad_v.sizes() == v.sizes());
  const std::vector<int64_t> rows = {q.size(0), q.size(2), q.size(1)};
  LRA_CHECK(softmax.dim() == 4 && softmax.size(0) == 2 && softmax[0].sizes() == rows);
  LRA_CHECK(softmax.is_contiguous() && softmax.scalar_type() == wide_type(q));
  LRA_CHECK(!grad_logsumexp.defined() || grad_logsumexp.sizes() == rows);
  with_float_type(q, "lra::attention_backward", [&](auto zero) {
    using T = decltype(zero);
    using W = kernels::Wide<T>;
    kernel(call.get(), kernels::AttentionBackward<T>{
                           input_view<T>(q), input_view<T>(k), input_view<T>(v), input_view<T>(out),
                           input_view<T>(grad), softmax_rows<const W>(softmax),
                           output_view<T>(grad_q), output_view<T>(grad_k), output_view<T>(grad_v),
                           grad_logsumexp.defined() ? grad_logsumexp.const_data_ptr<W>() : nullptr,
                           bias_view<const W, W>(bias, call.get().shape),
                           bias_view<W, W>(grad_bias, call.get().shape)});
  });
}

}  // namespace lra::ops
