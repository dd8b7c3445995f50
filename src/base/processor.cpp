#include "base/processor.h"

#include <fstream>
#include <iterator>
#include <sstream>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace lra {
namespace {

// The value of the first line "name : value"; empty if there is none.
std::string value_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return "";
}

// Kernels for aarch64 print numbers instead of a name; these are the cores of servers.
// Source: arch/arm64/include/asm/cputype.h of Linux.
std::string arm_core(const std::string& part) {
  if (part == "0xd0c") return "Neoverse-N1";
  if (part == "0xd40") return "Neoverse-V1";
  if (part == "0xd49") return "Neoverse-N2";
  if (part == "0xd4f") return "Neoverse-V2";
  return "part " + part;
}

}  // namespace

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }
bool has_fast_pairs() { return has_avx512_bf16() && !__builtin_cpu_is("intel"); }
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_avx512_bf16() { return false; }
bool has_fast_pairs() { return false; }
#endif

#if defined(__x86_64__) && defined(__linux__)
namespace {

bool processor_has_tiles() {
  constexpr unsigned kSavesState = 1u << 27, kTiles = 1u << 24 | 1u << 22;  // OSXSAVE; TILE, BF16
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kSavesState) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kTiles) == kTiles;
}

bool system_saves_tiles() {
  constexpr unsigned kTileConfigAndData = 3u << 17;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileConfigAndData) == kTileConfigAndData;
}

// Linux keeps the 8 KB of tiles only for processes that ask; without it the first tile instruction
// is an illegal one. Fails before Linux 5.16, and in some containers.
bool tiles_permitted() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_amx() {
  static const bool has =
      has_avx512_bf16() && processor_has_tiles() && system_saves_tiles() && tiles_permitted();
  return has;
}
#else
bool has_amx() { return false; }
#endif

bool has_neon() {
#if defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

std::string processor_isa() {
  if (has_avx512()) return "avx512";
  if (has_avx2()) return "avx2";
  return has_neon() ? "neon" : "baseline";
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  return processor_name({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

std::string processor_name(const std::string& cpuinfo) {
  if (const std::string name = value_of(cpuinfo, "model name"); !name.empty()) return name;
  const std::string maker = value_of(cpuinfo, "CPU implementer");
  if (maker.empty()) return "unknown";
  const std::string part = value_of(cpuinfo, "CPU part");
  return maker == "0x41" ? "Arm " + arm_core(part) : "implementer " + maker + ", part " + part;
}

}  // namespace lra
