// Blocked attention on a device. Block lists stay in main memory, where they are checked; the
// kernels get copies.
#include <cstdint>

#include "kernels/attention/visibility.h"
#include "ops/attention/attention_problem.h"
#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

namespace cuda = kernels::cuda;

template <typename T>
Tensor copied(const T* data, size_t count, const Tensor& like) {
  const auto type = c10::CppTypeToScalarType<T>::value;
  return copy_to_device(
      at::from_blob(const_cast<T*>(data), {static_cast<int64_t>(count)}, at::TensorOptions(type)),
      like);
}

// A problem whose block lists are on the device, unless their form says it all.
class DeviceProblem {
 public:
  DeviceProblem(const kernels::AttentionProblem& problem, const Tensor& like) : problem_(problem) {
    kernels::check_attention_rules(problem);
    if (problem.visible.blocks == nullptr) return;
    blocks_ = *problem.visible.blocks;
    form_ = cuda::form_of(blocks_, problem.shape.query_length, problem.shape.key_length);
    problem_.visible.blocks = &blocks_;
    if (form_ != cuda::ListForm::kListed) {
      blocks_.offsets = nullptr;
      blocks_.key_blocks = nullptr;
      return;
    }
    const int64_t block = blocks_.query_block, length = problem.shape.query_length;
    const auto rows = static_cast<size_t>(blocks_.lists * ((length + block - 1) / block));
    offsets_ = copied(blocks_.offsets, rows + 1, like);
    key_blocks_ = copied(blocks_.key_blocks, static_cast<size_t>(blocks_.offsets[rows]), like);
    blocks_.offsets = offsets_.const_data_ptr<int64_t>();
    blocks_.key_blocks = key_blocks_.const_data_ptr<int32_t>();
  }
  DeviceProblem(const DeviceProblem&) = delete;
  DeviceProblem& operator=(const DeviceProblem&) = delete;
  const kernels::AttentionProblem& get() const { return problem_; }
  cuda::ListForm form() const { return form_; }

 private:
  kernels::AttentionProblem problem_;
  kernels::BlockLists blocks_;
  cuda::ListForm form_ = cuda::ListForm::kListed;
  Tensor offsets_, key_blocks_;
};

// Scratch memory of the backward pass.
class Scratch {
 public:
  Scratch(const kernels::AttentionProblem& problem, cuda::ListForm form, bool has_relative_bias,
          const Tensor& softmax)
      : mean_(at::empty_like(softmax[0])) {
    scratch_.mean = mean_.mutable_data_ptr<float>();
    if (has_relative_bias) {
      by_distance_ = at::empty({cuda::relative_bias_scratch(problem, form)}, softmax.options());
      scratch_.by_distance = by_distance_.mutable_data_ptr<float>();
    }
    if (problem.visible.blocks == nullptr || form != cuda::ListForm::kListed) return;
    const auto lists = cuda::transpose(*problem.visible.blocks, problem.shape.query_length,
                                       problem.shape.key_length);
    offsets_ = copied(lists.offsets.data(), lists.offsets.size(), softmax);
    query_blocks_ = copied(lists.query_blocks.data(), lists.query_blocks.size(), softmax);
    scratch_.key_offsets = offsets_.const_data_ptr<int64_t>();
    scratch_.query_blocks = query_blocks_.const_data_ptr<int32_t>();
  }
  const cuda::AttentionScratch& get() const { return scratch_; }

 private:
  Tensor mean_, by_distance_, offsets_, query_blocks_;
  cuda::AttentionScratch scratch_;
};

// Columns of values, as wide as the kernels take them. Wider values than 64, or than keys, are cut
// into several: every slice has the same weights.
struct Slice {
  int64_t first, width;
  Tensor of(const Tensor& t) const { return t.narrow(3, first, width); }
};
std::vector<Slice> slices_of(const AttentionArguments& a) {
  constexpr int64_t kWidth = 64, kVector = 8;
  const int64_t width = a.in.v.size(3), widest = std::max(kWidth, a.in.q.size(3));
  if (width <= widest) return {{0, width}};
  const int64_t count = (width + widest - 1) / widest;
  const int64_t each = ((width + count - 1) / count + kVector - 1) / kVector * kVector;
  std::vector<Slice> slices;
  for (int64_t first = 0; first < width; first += each) {
    slices.push_back({first, std::min(each, width - first)});
  }
  return slices;
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
      a.in.bias.defined() || a.weights != AttentionWeights::kSoftmax ||
      a.in.v.size(3) != a.in.q.size(3)) {
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
  const OnDeviceOf device(q, {a.pattern.runs, a.in.bias});
  // LibTorch's own switch is heeded (at::Context::setSDPUseFlash,
  // torch.backends.cuda.enable_flash_sdp).
  if (at::globalContext().userEnabledFlashSDP() && is_the_librarys(a)) {
    const auto [out, logsumexp] = library_attention(q, a.in.k, a.in.v, a.effective_scale());
    return {out, logsumexp.unsqueeze(0)};
  }
  const auto kernel = [&](const kernels::AttentionProblem& problem, const auto& args) {
    if constexpr (kHasKernel<std::decay_t<decltype(args)>>) {
      const DeviceProblem here(problem, q);
      cuda::attention_forward(here.get(), here.form(), args, device.stream());
    }
  };
  with_device_type(q, "lra::attention", [](auto) {});
  std::vector<Tensor> outs;
  Tensor softmax;
  for (const Slice& slice : slices_of(a)) {
    AttentionArguments of_slice = a;
    of_slice.in.v = slice.of(a.in.v);
    const AttentionResults results = attention_forward_by(kernel, of_slice);
    outs.push_back(results.out);
    softmax = results.softmax;
  }
  return {outs.size() == 1 ? outs[0] : at::cat(outs, 3), softmax};
}

Stack backward(Values values) {
  const AttentionArguments a = attention_arguments(values);
  const AttentionBackwardArguments b = attention_backward_arguments(values);
  const Tensor& q = a.in.q;
  with_device_type(q, "lra::attention", [](auto) {});
  const OnDeviceOf device(q, {a.pattern.runs, a.in.bias, b.grad, b.grad_logsumexp, b.out, b.softmax,
                              b.to.q, b.to.k, b.to.v, b.to.bias});
  if (b.softmax.size(0) == 1) {
    library_backward(a, b);
    return {};
  }
  const auto kernel = [&](const kernels::AttentionProblem& problem, const auto& args) {
    if constexpr (kHasKernel<std::decay_t<decltype(args)>>) {
      const DeviceProblem here(problem, q);
      const Scratch scratch(problem, here.form(), args.grad_bias.is_relative(), b.softmax);
      cuda::attention_backward(here.get(), here.form(), args, scratch.get(), device.stream());
    }
  };
  check_backward_shapes(a, b);
  for (const Slice& slice : slices_of(a)) {
    AttentionArguments of_slice = a;
    AttentionBackwardArguments results = b;
    of_slice.in.v = slice.of(a.in.v);
    results.grad = slice.of(b.grad);
    results.out = slice.of(b.out);
    results.to.v = slice.of(b.to.v);
    const bool is_first = slice.first == 0;
    if (!is_first) {
      results.grad_logsumexp = Tensor();
      for (Tensor* t : {&results.to.q, &results.to.k, &results.to.bias}) {
        if (t->defined()) *t = at::empty_like(*t);
      }
    }
    attention_backward_by(kernel, of_slice, results);
    if (is_first) continue;
    b.to.q.add_(results.to.q);
    b.to.k.add_(results.to.k);
    if (b.to.bias.defined()) b.to.bias.add_(results.to.bias);
  }
  return {};
}

void merge(Tensor& out, Tensor& softmax, const Tensor& part_out, const Tensor& part_softmax,
           double scale) {
  const OnDeviceOf device(out, {softmax, part_out, part_softmax});
  for (const Tensor& t : {out, softmax, part_out, part_softmax}) LRA_CHECK(t.is_contiguous());
  LRA_CHECK(out.sizes() == part_out.sizes() && softmax.sizes() == part_softmax.sizes());
  LRA_CHECK(softmax.numel() == 2 * out.numel() / out.size(3));
  with_device_type(out, "lra::merge_attention_", [&]<typename T>(T) {
    cuda::merge_attention<T>(
        {out.size(0), out.size(1), out.size(2), out.size(3), static_cast<float>(scale),
         mutable_data<T>(out), softmax.mutable_data_ptr<float>(), const_data<T>(part_out),
         part_softmax.const_data_ptr<float>()},
        device.stream());
  });
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("attention_forward", boxed<forward>());
  m.impl("attention_backward", boxed<backward>());
  m.impl("merge_attention_", merge);
}

}  // namespace lra::ops::device
