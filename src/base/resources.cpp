#include "base/resources.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "base/control_groups.h"

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

// Processor time of this process.
double own_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Sums over all processors since the machine was started: "cpu" user, nice, system, idle, iowait,
// irq, softirq, steal; guests are part of user and nice.
double busy_seconds() {
  std::ifstream in("/proc/stat");
  std::string name;
  in >> name;
  double ticks = 0;
  for (int column = 0; column < 8; ++column) {
    double count = 0;
    if (!(in >> count)) return 0;
    if (column != 3 && column != 4) ticks += count;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
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
  return std::min(machine, memory_group().limit);
}

int64_t available_memory_bytes() {
  const int64_t machine = kilobytes_field("/proc/meminfo", "MemAvailable:").value_or(0);
  return std::min(machine, memory_group().margin);
}

int64_t available_address_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
  const int64_t used = kilobytes_field("/proc/self/status", "VmSize:").value_or(0);
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - used);
}

OtherPrograms::OtherPrograms() : busy_seconds_(busy_seconds() - own_seconds()) {}

bool OtherPrograms::disturb(int threads) const {
  const double others = (busy_seconds() - own_seconds() - busy_seconds_) / watch_.seconds();
  const auto processors = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  const double own = std::min<double>(threads, processors);
  return others + own > processors + std::max(0.25, 0.05 * processors);
}

double busy_processors(double seconds) {
  const double before = busy_seconds();
  const Stopwatch watch;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return (busy_seconds() - before) / watch.seconds();
}

}  // namespace lra
