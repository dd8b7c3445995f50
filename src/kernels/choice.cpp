#include "kernels/choice.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace lra::kernels {
namespace {

struct OrderedList {
  Op op;
  const char* name;
  std::array<Isa, 3> best_first;  // the last fills up
};

constexpr OrderedList kOrderedLists[] = {
    {Op::kGemm, "gemm", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kAttentionForward, "attention_forward", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kAttentionBackward, "attention_backward", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kAttentionForwardBf16,
     "attention_forward_bf16",
     {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kRef}},
    {Op::kAttentionBackwardBf16,
     "attention_backward_bf16",
     {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kRef}},
    {Op::kGeluDropout, "gelu_dropout", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kGeluDropoutBackward, "gelu_dropout_backward", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kDropoutAdd, "dropout_add", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kApplyDropout, "apply_dropout", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kAdamStep, "adam_step", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kSumOfSquares, "sum_of_squares", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kColumnSums, "column_sums", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kOuterProducts, "outer_products", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kOuterProductsBf16, "outer_products_bf16", {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kRef}},
    {Op::kLayerNormBackward, "layer_norm_backward", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
    {Op::kFeatureAttention, "feature_attention", {Isa::kAvx512, Isa::kRef, Isa::kRef}},
};

Isa forced_isa(std::string_view name) {
  for (const Isa isa : {Isa::kRef, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (name != isa_name(isa)) continue;
    if (isa_available(isa)) return isa;
    throw Error({"LRA_KERNELS", "this processor cannot run '" + std::string(name) + "'", "ref",
                 "unset it to take the best that runs"});
  }
  throw Error({"LRA_KERNELS", "unknown value '" + std::string(name) + "'",
               "ref, avx512 or avx512_bf16", "unset it to take the best that runs"});
}

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kRef:
      break;
  }
  return "ref";
}

bool isa_available(Isa isa) {
  if (isa == Isa::kRef) return true;
  if (isa == Isa::kAvx512Bf16 && !__builtin_cpu_supports("avx512bf16")) return false;
  // The features that the compile flags of *_avx512.cpp let the compiler use.
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
}

Isa choose(Op op) {
  const auto* const list = std::find_if(std::begin(kOrderedLists), std::end(kOrderedLists),
                                        [&](const OrderedList& each) { return each.op == op; });
  LRA_CHECK(list != std::end(kOrderedLists));
  const auto& best_first = list->best_first;
  if (const char* forced = std::getenv("LRA_KERNELS")) {
    const Isa isa = forced_isa(forced);
    // An op without that implementation takes its best one.
    if (std::find(best_first.begin(), best_first.end(), isa) != best_first.end()) return isa;
  }
  return *std::find_if(best_first.begin(), best_first.end(), isa_available);
}

std::vector<KernelChoice> kernel_choices() {
  std::vector<KernelChoice> choices;
  for (const OrderedList& list : kOrderedLists) {
    choices.push_back({list.name, isa_name(choose(list.op))});
  }
  return choices;
}

}  // namespace lra::kernels
