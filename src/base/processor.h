// The processor that this process runs on.
#pragma once

#include <string>

namespace lra {

// Instruction sets that the vector code of the kernels is compiled for. Each is false on other
// architectures.
bool has_neon();         // every aarch64 processor
bool has_avx2();         // with FMA
bool has_avx512();       // F, BW, DQ and VL, and AVX2
bool has_avx512_bf16();  // products of bfloat16 pairs, and AVX-512

// The best of them, for records: "avx512", "avx2", "neon" or "baseline".
std::string processor_isa();
// "AMD EPYC 7763 64-Core Processor", "Arm Neoverse-V2", or "unknown".
std::string processor_name();
// The same from the text of /proc/cpuinfo.
std::string processor_name(const std::string& cpuinfo);

}  // namespace lra
