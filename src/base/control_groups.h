// Limits that the control groups of a process (a container, a job of a batch system) set: the least
// over each group and those above it, of version 2 and of version 1.
//
// In the functions `mount` is /sys/fs/cgroup and `groups` the text of /proc/self/cgroup; without
// them, those of this process.
#pragma once

#include <cstdint>
#include <string>

namespace lra {

// Memory in bytes; `margin` can still be allocated. File pages that the kernel would evict first do
// not count as used.
struct MemoryGroup {
  int64_t limit = INT64_MAX, margin = INT64_MAX;
};
MemoryGroup memory_group(const std::string& mount, const std::string& groups);
MemoryGroup memory_group();

// Processors that may be busy on average (Docker's --cpus, limits of Kubernetes), as 1.5; infinite
// without a quota.
double processor_quota(const std::string& mount, const std::string& groups);
double processor_quota();

}  // namespace lra
