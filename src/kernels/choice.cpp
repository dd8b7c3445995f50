#include "kernels/choice.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/processor.h"
#include "kernels/attention/attention.h"

namespace lra::kernels {
namespace {

constexpr Isa kVectors[] = {Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kRef};
constexpr Isa kTiles[] = {Isa::kAmx, Isa::kAvx512, Isa::kAvx2, Isa::kNeon, Isa::kRef};
constexpr Isa kTilesOrPairs[] = {Isa::kAmx,  Isa::kAvx512Bf16, Isa::kAvx512,
                                 Isa::kAvx2, Isa::kNeon,       Isa::kRef};
bool has_emulated_tiles() {
  using Forward = void(const AttentionProblem&, const AttentionForward<Bf16>&);
#if defined(__aarch64__)
  Forward* const linked = neon::emulated::attention_forward;
#else
  Forward* const linked = avx2::emulated::attention_forward;
#endif
  return linked != nullptr && (has_avx2() || has_neon());
}

// The instruction sets, in the order of Isa.
struct {
  const char* name;
  bool (*is_available)();
} constexpr kIsas[] = {
    {"ref", [] { return true; }},
    {"neon", has_neon},
    {"avx2", has_avx2},
    {"avx512", has_avx512},
    {"avx512_bf16", has_avx512_bf16},
    {"amx", has_amx},
    {"amx_emulated", has_emulated_tiles},
};

struct OrderedList {
  Op op;
  const char* name;
  std::span<const Isa> best_first;
};

constexpr OrderedList kOrderedLists[] = {
    {Op::kGemm, "gemm", kVectors},
    {Op::kAttentionForward, "attention_forward", kVectors},
    {Op::kAttentionBackward, "attention_backward", kVectors},
    {Op::kAttentionForwardBf16, "attention_forward_bf16", kTilesOrPairs},
    {Op::kAttentionBackwardBf16, "attention_backward_bf16", kTilesOrPairs},
    {Op::kGeluDropout, "gelu_dropout", kVectors},
    {Op::kGeluDropoutBackward, "gelu_dropout_backward", kVectors},
    {Op::kDropoutAdd, "dropout_add", kVectors},
    {Op::kApplyDropout, "apply_dropout", kVectors},
    {Op::kAdamStep, "adam_step", kVectors},
    {Op::kSumOfSquares, "sum_of_squares", kVectors},
    {Op::kColumnSums, "column_sums", kVectors},
    {Op::kOuterProducts, "outer_products", kVectors},
    {Op::kOuterProductsBf16, "outer_products_bf16", kTilesOrPairs},
    {Op::kLayerNormForward, "layer_norm_forward", kVectors},
    {Op::kLayerNormBackward, "layer_norm_backward", kVectors},
    {Op::kBatchNorm, "batch_norm", kVectors},
    {Op::kConvolution, "convolution", kVectors},
    {Op::kFeatureAttention, "feature_attention", kVectors},
    {Op::kFeatureAttentionBf16, "feature_attention_bf16", kTiles},
    {Op::kGate, "gate", kVectors},
    {Op::kDiagonalScan, "diagonal_scan", kVectors},
    {Op::kStateScan, "state_scan", kVectors},
    {Op::kSelectiveScan, "selective_scan", kVectors},
    {Op::kMatrixScan, "matrix_scan", kVectors},
};

Isa forced_isa(std::string_view name) {
  std::string names;
  for (size_t n = 0; n < std::size(kIsas); ++n) {
    if (!names.empty()) names += n + 1 == std::size(kIsas) ? " or " : ", ";
    names += kIsas[n].name;
    if (name != kIsas[n].name) continue;
    if (kIsas[n].is_available()) return static_cast<Isa>(n);
    throw Error({"LRA_KERNELS", "this processor cannot run '" + std::string(name) + "'", "ref",
                 "unset it to take the best that runs"});
  }
  throw Error({"LRA_KERNELS", "unknown value '" + std::string(name) + "'", names,
               "unset it to take the best that runs"});
}

// With slow pairs, bfloat16 arrays are multiplied in float: no precision is slower than the other.
bool is_best(Isa isa) { return isa == Isa::kAvx512Bf16 ? has_fast_pairs() : isa_available(isa); }

}  // namespace

const char* isa_name(Isa isa) { return kIsas[static_cast<size_t>(isa)].name; }

bool isa_available(Isa isa) { return kIsas[static_cast<size_t>(isa)].is_available(); }

Isa choose(Op op) {
  const auto* const list = std::find_if(std::begin(kOrderedLists), std::end(kOrderedLists),
                                        [&](const OrderedList& each) { return each.op == op; });
  LRA_CHECK(list != std::end(kOrderedLists));
  auto best_first = list->best_first;
  if (const char* forced = std::getenv("LRA_KERNELS")) {
    const Isa isa = forced_isa(forced), listed = isa == Isa::kAmxEmulated ? Isa::kAmx : isa;
    if (std::find(best_first.begin(), best_first.end(), listed) != best_first.end()) return isa;
    // An op without that implementation takes its best one, but tiles only if they are asked for.
    if (best_first.front() == Isa::kAmx) best_first = best_first.subspan(1);
  }
  return *std::find_if(best_first.begin(), best_first.end(), is_best);
}

bool has_tiles() {
  const Isa isa = choose(Op::kOuterProductsBf16);
  return isa == Isa::kAmx || isa == Isa::kAmxEmulated;
}

std::vector<KernelChoice> kernel_choices() {
  std::vector<KernelChoice> choices;
  for (const OrderedList& list : kOrderedLists) {
    choices.push_back({list.name, isa_name(choose(list.op))});
  }
  return choices;
}

}  // namespace lra::kernels
