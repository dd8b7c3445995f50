// Provenance of a result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lra {

// Provenance of a result: enough to say whether two runs may be compared, and to run one again.
struct Provenance {
  std::string lra_version;    // "0.1.0"
  std::string git_revision;   // 40 hex digits, or "unknown"
  std::string git_dirty;      // hash of the uncommitted changes, empty when clean
  std::string compiler;       // "g++ 12.2.0"
  std::string torch_version;  // "2.13.0", empty for torch-free commands
  std::string processor;      // "AMD EPYC ..."
  std::string isa;            // "avx512"
  std::string device;         // "cpu"
  int64_t threads = 0;
  std::optional<int64_t> ranks = {};           // processes that trained together; absent with one
  std::map<std::string, std::string> kernels;  // operator -> chosen implementation
  std::string host_os;
  std::string started_utc;  // ISO 8601
  std::string finished_utc;
  std::vector<std::string> command;  // argv
};

// Provenance of this program and machine: version, git revision and dirty state (baked in
// at build time), compiler, processor, ISA, system, threads, start time and `command` (argv). The
// caller sets torch_version, device and kernels, and finished_utc at the end.
Provenance make_provenance(const std::vector<std::string>& command);

}  // namespace lra
