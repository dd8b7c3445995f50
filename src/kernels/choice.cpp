#include "kernels/choice.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/processor.h"

namespace lra::kernels {
namespace {

using BestFirst = std::array<Isa, 5>;  // the last fills up
constexpr BestFirst kVectors{Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kRef, Isa::kRef};
constexpr BestFirst kPairs{Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kRef};

struct OrderedList {
  Op op;
  const char* name;
  BestFirst best_first;
};

constexpr OrderedList kOrderedLists[] = {
    {Op::kGemm, "gemm", kVectors},
    {Op::kAttentionForward, "attention_forward", kVectors},
    {Op::kAttentionBackward, "attention_backward", kVectors},
    {Op::kAttentionForwardBf16, "attention_forward_bf16", kPairs},
    {Op::kAttentionBackwardBf16, "attention_backward_bf16", kPairs},
    {Op::kGeluDropout, "gelu_dropout", kVectors},
    {Op::kGeluDropoutBackward, "gelu_dropout_backward", kVectors},
    {Op::kDropoutAdd, "dropout_add", kVectors},
    {Op::kApplyDropout, "apply_dropout", kVectors},
    {Op::kAdamStep, "adam_step", kVectors},
    {Op::kSumOfSquares, "sum_of_squares", kVectors},
    {Op::kColumnSums, "column_sums", kVectors},
    {Op::kOuterProducts, "outer_products", kVectors},
    {Op::kOuterProductsBf16, "outer_products_bf16", kPairs},
    {Op::kLayerNormForward, "layer_norm_forward", kVectors},
    {Op::kLayerNormBackward, "layer_norm_backward", kVectors},
    {Op::kBatchNorm, "batch_norm", kVectors},
    {Op::kConvolution, "convolution", kVectors},
    {Op::kFeatureAttention, "feature_attention", kVectors},
    {Op::kGate, "gate", kVectors},
    {Op::kDiagonalScan, "diagonal_scan", kVectors},
    {Op::kStateScan, "state_scan", kVectors},
    {Op::kSelectiveScan, "selective_scan", kVectors},
};

Isa forced_isa(std::string_view name) {
  for (const Isa isa : {Isa::kRef, Isa::kNeon, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (name != isa_name(isa)) continue;
    if (isa_available(isa)) return isa;
    throw Error({"LRA_KERNELS", "this processor cannot run '" + std::string(name) + "'", "ref",
                 "unset it to take the best that runs"});
  }
  throw Error({"LRA_KERNELS", "unknown value '" + std::string(name) + "'",
               "ref, neon, avx2, avx512 or avx512_bf16", "unset it to take the best that runs"});
}

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::kNeon:
      return "neon";
    case Isa::kAvx2:
      return "avx2";
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
  switch (isa) {
    case Isa::kNeon:
      return has_neon();
    case Isa::kAvx2:
      return has_avx2();
    case Isa::kAvx512:
      return has_avx512();
    case Isa::kAvx512Bf16:
      return has_avx512_bf16();
    case Isa::kRef:
      break;
  }
  return true;
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
