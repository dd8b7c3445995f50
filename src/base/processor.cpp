#include "base/processor.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace lra {
namespace {

// The value of the first line "name : value"; empty if there is none.
std::string value_of(const std::string& text, const std::string& name) {
  for (size_t line = 0; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    const size_t colon = text.find(':', line);
    if (text.compare(line, name.size(), name) == 0 && colon < end) {
      const size_t value = text.find_first_not_of(" \t", colon + 1);
      if (value < end) return text.substr(value, end - value);
    }
    line = end + 1;
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
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_avx512_bf16() { return false; }
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
