// Blocked attention on a device. Block lists stay in main memory, where they are checked; the
// kernels get copies.
#include <cstdint>

#include "kernels/attention/visibility.h"
#include "ops/attention/attention_problem.h"
#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

using at::Tensor;
namespace cuda = kernels::cuda;

template <typename T>
Tensor copied(const T* data, size_t count, const Tensor& like) {
  const auto type = c10::CppTypeToScalarType<T>::value;
  return copy_to_device(
      at::from_blob(const_cast<T*>(data), {static_cast<int64_t>(count)}, at::TensorOptions(type)),
      like);
}

// A problem whose block lists are on the device, and the lists as seen from the keys.
class DeviceProblem {
 public:
  DeviceProblem(const kernels::AttentionProblem& problem, const Tensor& like) : problem_(problem) {
    kernels::check_attention_rules(problem);
    if (problem.visible.blocks == nullptr) return;
    blocks_ = *problem.visible.blocks;
    const int64_t block = blocks_.query_block, length = problem.shape.query_length;
    const auto rows = static_cast<size_t>(blocks_.lists * ((length + block - 1) / block));
    offsets_ = copied(blocks_.offsets, rows + 1, like);
    key_blocks_ = copied(blocks_.key_blocks, static_cast<size_t>(blocks_.offsets[rows]), like);
    blocks_.offsets = offsets_.const_data_ptr<int64_t>();
    blocks_.key_blocks = key_blocks_.const_data_ptr<int32_t>();
    problem_.visible.blocks = &blocks_;
  }
  DeviceProblem(const DeviceProblem&) = delete;
  DeviceProblem& operator=(const DeviceProblem&) = delete;
  const kernels::AttentionProblem& get() const { return problem_; }

 private:
  kernels::AttentionProblem problem_;
  kernels::BlockLists blocks_;
  Tensor offsets_, key_blocks_;
};

// Scratch memory of the backward pass.
class Scratch {
 public:
  Scratch(const kernels::AttentionProblem& problem, const Tensor& softmax)
      : mean_(at::empty_like(softmax[0])) {
    scratch_.mean = mean_.mutable_data_ptr<float>();
    if (problem.visible.blocks == nullptr) return;
    const auto lists = cuda::transpose(*problem.visible.blocks, problem.shape.query_length,
                                       problem.shape.key_length);
    offsets_ = copied(lists.offsets.data(), lists.offsets.size(), softmax);
    query_blocks_ = copied(lists.query_blocks.data(), lists.query_blocks.size(), softmax);
    scratch_.key_offsets = offsets_.const_data_ptr<int64_t>();
    scratch_.query_blocks = query_blocks_.const_data_ptr<int32_t>();
  }
  const cuda::AttentionScratch& get() const { return scratch_; }

 private:
  Tensor mean_, offsets_, query_blocks_;
  cuda::AttentionScratch scratch_;
};

// Refuses what only the CPU has kernels for.
void check_kernels(const AttentionArguments& a) {
  with_device_type(a.in.q, "lra::attention", [](auto) {});
  const bool is_relative = a.in.bias.defined() && a.in.bias.dim() == 2;
  if (!is_relative && a.weights == AttentionWeights::kSoftmax && a.in.v.size(3) == a.in.q.size(3)) {
    return;
  }
  throw Error({.where = "lra::attention",
               .what = "has no kernel on a GPU for the Laplace function, a bias for each distance, "
                       "or values of another width than queries",
               .expected = "a softmax, a bias [H, L, S], and widths that are the same",
               .advice = "compute on the CPU"});
}

// True unless the arguments are those for double, which has no kernel on a device.
template <typename Args>
constexpr bool kHasKernel = !std::is_same_v<Args, kernels::AttentionForward<double>> &&
                            !std::is_same_v<Args, kernels::AttentionBackward<double>>;

// True if rows can be read 16 bytes at a time, as the library does without a check.
bool is_aligned(const Tensor& t) {
  const int64_t vector = 16 / t.element_size();
  bool aligned = reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 16 == 0 && t.stride(-1) == 1;
  for (int64_t axis = 0; axis + 1 < t.dim(); ++axis) {
    aligned = aligned && (t.size(axis) == 1 || t.stride(axis) % vector == 0);
  }
  return aligned;
}

// True if the library's flash attention, whose kernels are made for each generation of GPUs,
// computes the problem: bfloat16 without lists and biases, every query sees every key, no dropout.
// It returns only the logsumexp of the softmax, [1, B, H, L], so it cannot compute part of one.
bool is_the_librarys(const AttentionArguments& a) {
  // Only the kernels with lists check them.
  if (a.in.q.scalar_type() != at::kBFloat16 || a.is_part || a.pattern.offsets.defined() ||
      a.in.bias.defined()) {
    return false;
  }
  const AttentionCall call(a);
  kernels::check_attention_rules(call.get());
  const kernels::AttentionVisibility& visible = call.get().visible;
  const bool dense = visible.key_mask == nullptr && visible.query_mask == nullptr &&
                     visible.runs == nullptr && visible.left < 0 && visible.right < 0;
  const int64_t width = a.in.q.size(3);
  return dense && a.dropout.rate == 0 && call.get().scale > 0 && width % 8 == 0 &&
         width <= cuda::kMaxHeadDim && is_aligned(a.in.q) && is_aligned(a.in.k) &&
         is_aligned(a.in.v);
}

void library_backward(const AttentionArguments& a, const AttentionBackwardArguments& b) {
  const Tensor& q = a.in.q;
  LRA_CHECK(is_the_librarys(a) && !b.grad_logsumexp.defined() && is_aligned(b.out));
  check_backward_shapes(a, b);
  LRA_CHECK(b.softmax.sizes() == at::IntArrayRef({1, q.size(0), q.size(2), q.size(1)}));
  LRA_CHECK(b.softmax.is_contiguous() && b.softmax.scalar_type() == at::kFloat);
  const Tensor grad =
      is_aligned(b.grad) ? b.grad.contiguous() : b.grad.clone(at::MemoryFormat::Contiguous);
  const auto [of_q, of_k, of_v] =
      library_attention_backward(grad, q, a.in.k, a.in.v, b.out, b.softmax[0], a.effective_scale());
  b.to.q.copy_(of_q);
  b.to.k.copy_(of_k);
  b.to.v.copy_(of_v);
}

Stack forward(Values values) {
  const AttentionArguments a = attention_arguments(values);
  const Tensor& q = a.in.q;
  check_kernels(a);
  const OnDeviceOf device(q, {a.pattern.runs, a.in.bias});
  // LibTorch's own switch is heeded (at::Context::setSDPUseFlash,
  // torch.backends.cuda.enable_flash_sdp).
  if (at::globalContext().userEnabledFlashSDP() && is_the_librarys(a)) {
    const auto [out, logsumexp] = library_attention(q, a.in.k, a.in.v, a.effective_scale());
    return {out, logsumexp.unsqueeze(0)};
  }
  const auto kernel = [&](const kernels::AttentionProblem& problem, const auto& args) {
    if constexpr (kHasKernel<std::decay_t<decltype(args)>>) {
      cuda::attention_forward(DeviceProblem(problem, q).get(), args, device.stream());
    }
  };
  const auto [out, softmax] = attention_forward_by(kernel, a);
  return {out, softmax};
}

Stack backward(Values values) {
  const AttentionArguments a = attention_arguments(values);
  const AttentionBackwardArguments b = attention_backward_arguments(values);
  const Tensor& q = a.in.q;
  check_kernels(a);
  const OnDeviceOf device(q, {a.pattern.runs, a.in.bias, b.grad, b.grad_logsumexp, b.out, b.softmax,
                              b.to.q, b.to.k, b.to.v, b.to.bias});
  if (b.softmax.size(0) == 1) {
    library_backward(a, b);
    return {};
  }
  const auto kernel = [&](const kernels::AttentionProblem& problem, const auto& args) {
    if constexpr (kHasKernel<std::decay_t<decltype(args)>>) {
      const Scratch scratch(problem, b.softmax);
      cuda::attention_backward(DeviceProblem(problem, q).get(), args, scratch.get(),
                               device.stream());
    }
  };
  attention_backward_by(kernel, a, b);
  return {};
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("attention_forward", boxed<forward>());
  m.impl("has_every_attention", [](const Tensor&) { return false; });
  m.impl("attention_backward", boxed<backward>());
}

}  // namespace lra::ops::device
