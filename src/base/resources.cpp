#include "base/resources.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace lra {
namespace {

// The number after `key` in a "Key:   123 kB" file, in bytes.
std::optional<int64_t> kilobytes_field(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key)) return std::atoll(line.c_str() + key.size()) * 1024;
  }
  return {};
}

// A file that holds one number; nothing when it is absent or says "max".
std::optional<int64_t> number_file(const std::string& path) {
  std::ifstream in(path);
  int64_t value = 0;
  if (!(in >> value)) return {};
  return value;
}

struct GroupMemory {
  std::optional<int64_t> limit, used;
};

// The memory control group as seen from inside a container: version 2, then version 1.
GroupMemory group_memory() {
  const std::string root = "/sys/fs/cgroup/";
  if (auto limit = number_file(root + "memory.max")) {
    return {limit, number_file(root + "memory.current")};
  }
  return {number_file(root + "memory/memory.limit_in_bytes"),
          number_file(root + "memory/memory.usage_in_bytes")};
}

}  // namespace

int64_t resident_bytes() { return kilobytes_field("/proc/self/status", "VmRSS:").value_or(0); }

int64_t peak_resident_bytes() {
  // VmHWM follows a reset of the peak; ru_maxrss does not.
  if (auto peak = kilobytes_field("/proc/self/status", "VmHWM:")) return *peak;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

bool reset_peak_resident_bytes() {
  const int fd = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, "5", 1) == 1;
  ::close(fd);
  return done;
}

int64_t total_memory_bytes() {
  const int64_t machine = kilobytes_field("/proc/meminfo", "MemTotal:").value_or(0);
  return std::min(machine, group_memory().limit.value_or(machine));
}

int64_t available_memory_bytes() {
  const int64_t machine = kilobytes_field("/proc/meminfo", "MemAvailable:").value_or(0);
  const GroupMemory group = group_memory();
  if (!group.limit || !group.used) return machine;
  return std::min(machine, std::max<int64_t>(0, *group.limit - *group.used));
}

}  // namespace lra
