// Choice of the implementation of each kernel: an ordered list per op, best first, reference last.
//
// The environment variable LRA_KERNELS (a name of isa_name()) forces one for every op that has it;
// it is read at each call, so there is no hidden state.
//
// Goals of the room `kernels`: the same bits at any number of threads, no matrix of L x L, and each
// kernel tested against a plain reference. Non-goals: tensors, autograd, general linear algebra,
// which LibTorch and oneDNN have.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

namespace lra::kernels {

// kNeon: aarch64; kAvx2: with FMA; kAvx512Bf16: AVX-512 with products of bfloat16 pairs; kAmx: the
// same with tiles; kAmxEmulated: tiles in vector code (simd/tiles.h), slow, only if it is forced
// and in programs that link the emulated kernels, as tests do.
enum class Isa { kRef, kNeon, kAvx2, kAvx512, kAvx512Bf16, kAmx, kAmxEmulated };

// Every architecture has these:
//   LRA_DECLARE_KERNELS   declares functions defined by the reference and by vector code
//   LRA_RETURN_BEST       returns the call that follows `op`, from its best implementation; if T
//                         is double, from the reference
//   LRA_VECTOR_ISAS       the instruction sets that vector code (simd.h) is compiled for
//   LRA_DECLARE_SIMD      declares functions defined by vector code, once for each of them
//   LRA_RETURN_CALL       returns the call, or the function, that follows `isa`, taken from the
//                         namespace of that instruction set; for kRef from ref
//   LRA_DECLARE_TILES     declares a function defined on tiles, real and emulated; the emulated one
//                         may be missing
//   LRA_RETURN_IF_TILES   returns the call if `isa`, a variable, is that of tiles
//   LRA_RETURN_TILES_CALL LRA_RETURN_CALL for functions that tiles define, too
//   LRA_RETURN_PAIRS_CALL the same for those that products of bfloat16 pairs define as well
#define LRA_DECLARE_KERNELS(...) \
  namespace ref {                \
  __VA_ARGS__                    \
  }                              \
  LRA_DECLARE_SIMD(__VA_ARGS__)
#define LRA_RETURN_BEST(T, op, ...)           \
  if constexpr (std::is_same_v<T, double>) {  \
    return ref::__VA_ARGS__;                  \
  } else {                                    \
    LRA_RETURN_CALL(choose(op), __VA_ARGS__); \
  }
#define LRA_DECLARE_EMULATED(...) \
  LRA_DECLARE_SIMD(namespace emulated { __VA_ARGS__ __attribute__((weak)); })
#if defined(__aarch64__)
#define LRA_VECTOR_ISAS Isa::kNeon
#define LRA_DECLARE_SIMD(...) \
  namespace neon {            \
  __VA_ARGS__                 \
  }
#define LRA_RETURN_CALL(isa, ...)                    \
  if ((isa) == Isa::kNeon) return neon::__VA_ARGS__; \
  return ref::__VA_ARGS__
#define LRA_DECLARE_TILES(...) LRA_DECLARE_EMULATED(__VA_ARGS__)
#define LRA_RETURN_IF_TILES(isa, ...) \
  if ((isa) == Isa::kAmxEmulated) return neon::emulated::__VA_ARGS__
#define LRA_RETURN_PAIRS_CALL(isa, ...) LRA_RETURN_TILES_CALL(isa, __VA_ARGS__)
#else
#define LRA_VECTOR_ISAS Isa::kAvx2, Isa::kAvx512
#define LRA_DECLARE_SIMD(...) \
  namespace avx2 {            \
  __VA_ARGS__                 \
  }                           \
  namespace avx512 {          \
  __VA_ARGS__                 \
  }
#define LRA_RETURN_CALL(isa, ...) \
  switch (isa) {                  \
    case Isa::kAmx:               \
    case Isa::kAvx512Bf16:        \
    case Isa::kAvx512:            \
      return avx512::__VA_ARGS__; \
    case Isa::kAvx2:              \
      return avx2::__VA_ARGS__;   \
    case Isa::kNeon:              \
    case Isa::kAmxEmulated:       \
    case Isa::kRef:               \
      break;                      \
  }                               \
  return ref::__VA_ARGS__
#define LRA_DECLARE_TILES(...)      \
  LRA_DECLARE_EMULATED(__VA_ARGS__) \
  namespace amx {                   \
  __VA_ARGS__;                      \
  }
#define LRA_RETURN_IF_TILES(isa, ...)                                  \
  if ((isa) == Isa::kAmx) return amx::__VA_ARGS__;                     \
  if ((isa) == Isa::kAmxEmulated) {                                    \
    return isa_available(Isa::kAvx512) ? avx512::emulated::__VA_ARGS__ \
                                       : avx2::emulated::__VA_ARGS__;  \
  }
#define LRA_RETURN_PAIRS_CALL(isa, ...)                           \
  if ((isa) == Isa::kAvx512Bf16) return avx512_bf16::__VA_ARGS__; \
  LRA_RETURN_TILES_CALL(isa, __VA_ARGS__)
#endif
#define LRA_RETURN_TILES_CALL(isa, ...)  \
  LRA_RETURN_IF_TILES(isa, __VA_ARGS__); \
  LRA_RETURN_CALL(isa, __VA_ARGS__)

// "ref", "neon", "avx2", "avx512", "avx512_bf16", "amx" or "amx_emulated".
const char* isa_name(Isa isa);

// True if this processor (and this build) can run the implementation.
bool isa_available(Isa isa);

enum class Op {
  kGemm,
  kAttentionForward,
  kAttentionBackward,
  kAttentionForwardBf16,
  kAttentionBackwardBf16,
  kGeluDropout,
  kGeluDropoutBackward,
  kDropoutAdd,
  kApplyDropout,
  kAdamStep,
  kSumOfSquares,
  kColumnSums,
  kOuterProducts,
  kOuterProductsBf16,
  kLayerNormForward,
  kLayerNormBackward,
  kBatchNorm,
  kConvolution,
  kFeatureAttention,
  kFeatureAttentionBf16,
  kGate,
  kDiagonalScan,
  kStateScan,
  kSelectiveScan,
  kMatrixScan,
};

// The best implementation of `op` that is available: for float32, or for bfloat16 arrays where the
// name of the op says so; elementwise ops have one choice for both, or the forced one. lra::Error
// when LRA_KERNELS is not a known name, or names one that this processor cannot run.
Isa choose(Op op);

// True if products of bfloat16 matrices run on tiles; emulated ones included.
bool has_tiles();

struct KernelChoice {
  std::string op;              // "attention_forward"
  std::string implementation;  // "avx512"
};

// The choice of every op in the room, for `lra info` and run records. (float64 always runs the
// reference.)
std::vector<KernelChoice> kernel_choices();

}  // namespace lra::kernels
