// Treats subnormal numbers as 0 on the current thread during its lifetime. They cost hundreds of
// cycles on many processors, and responses to an impulse decay through them. The program treats
// them so from its start; Python does not.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cstdint>
#endif

namespace lra::kernels {

class FlushDenormals {
 public:
  FlushDenormals() : before_(control()) { set_control(before_ | kFlush); }
  ~FlushDenormals() { set_control(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  // The register that controls floating-point arithmetic, MXCSR or FPCR.
#if defined(__x86_64__)
  using Control = unsigned;
  static constexpr Control kFlush = 0x8040;  // results and operands
  static Control control() { return _mm_getcsr(); }
  static void set_control(Control bits) { _mm_setcsr(bits); }
#else
  using Control = uint64_t;
  static constexpr Control kFlush = Control{1} << 24;  // both
  static Control control() {
    Control bits = 0;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void set_control(Control bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#endif
  const Control before_;
};

}  // namespace lra::kernels
