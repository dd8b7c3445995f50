// Treats subnormal numbers as 0 on the current thread during its lifetime. They cost hundreds of
// cycles on many processors, and responses to an impulse decay through them. The program treats
// them so from its start; Python does not.
#pragma once

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace lra::kernels {

class FlushDenormals {
 public:
#ifdef __SSE__
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlush); }
  ~FlushDenormals() { _mm_setcsr(before_); }
#else
  FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#ifdef __SSE__
 private:
  static constexpr unsigned kFlush = 0x8040;  // results and operands
  const unsigned before_;
#endif
};

}  // namespace lra::kernels
