#include "records/provenance.h"

#include <sys/utsname.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/processor.h"
#include "base/revision.h"

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

Provenance make_provenance(const std::vector<std::string>& command) {
  Provenance result;
  result.lra_version = lra_version();
  result.git_revision = git_revision();
  result.git_dirty = git_dirty();
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
