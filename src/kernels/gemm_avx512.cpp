#include "kernels/gemm.h"

#include "kernels/gemm_blocks.h"
#include "kernels/simd.h"

namespace lra::kernels::avx512 {
namespace {

struct FullVector {
  using Vector = __m512;
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
};

// Half a vector, for head dimensions up to 8. On processors that run 512 bits in two halves (Zen 4)
// a product of depth 256 goes from 52 to 72 useful GFLOP/s.
struct HalfVector {
  using Vector = __m256;
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
};

}  // namespace

void gemm(const GemmSize& size, const GemmOperands& operands, bool accumulate) {
  multiply_blocks<FullVector, HalfVector>(size, operands, accumulate);
}

}  // namespace lra::kernels::avx512
