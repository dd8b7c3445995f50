#include "base/provenance.h"

#include <sys/utsname.h>

#include <fstream>

#include "base/clock.h"
#include "base/parallel.h"
// Made by cmake/git_revision.cmake at every build.
#include "lra_git_revision.h"

namespace lra {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

std::string host_os() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

}  // namespace

std::string lra_version() { return LRA_VERSION; }

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return "unknown";
}

std::string processor_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return "avx512";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "baseline";
}

std::string program_revision() {
  return lra_version() + " " + LRA_GIT_REVISION + " " + LRA_GIT_DIRTY;
}

Provenance make_provenance(const std::vector<std::string>& command) {
  Provenance result;
  result.lra_version = lra_version();
  result.git_revision = LRA_GIT_REVISION;
  result.git_dirty = LRA_GIT_DIRTY;
  result.compiler = compiler();
  result.processor = processor_name();
  result.isa = processor_isa();
  result.threads = num_threads();
  result.host_os = host_os();
  result.started_utc = utc_now();
  result.command = command;
  return result;
}

}  // namespace lra
