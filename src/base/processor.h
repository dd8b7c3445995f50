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
// Pairs that are multiplied at the rate of floats or faster: not Intel's, whose instruction takes
// two cycles of the one unit that has it (docs/numerics.md).
bool has_fast_pairs();
// Tiles of bfloat16 (AMX_TILE, AMX_BF16), AVX512_BF16, and an operating system that lets this
// process use tiles: the first call asks for that.
bool has_amx();

// The best of them, for records: "avx512", "avx2", "neon" or "baseline".
std::string processor_isa();
// "AMD EPYC 7763 64-Core Processor", "Arm Neoverse-V2", or "unknown".
std::string processor_name();
// The same from the text of /proc/cpuinfo.
std::string processor_name(const std::string& cpuinfo);

}  // namespace lra
