#include "base/control_groups.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>

namespace lra {
namespace {

constexpr const char* kMount = "/sys/fs/cgroup";

std::string own_groups() {
  std::ifstream in("/proc/self/cgroup");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The number in a file; nothing if the file is absent or holds "max".
std::optional<int64_t> number_file(const std::string& path) {
  std::ifstream in(path);
  int64_t value = 0;
  if (!(in >> value)) return {};
  return value;
}

// The number behind `key` in a file of lines "key 123".
int64_t field(const std::string& path, const std::string& key) {
  std::ifstream in(path);
  int64_t value = 0;
  for (std::string name; in >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

// Calls look(folder) for the group `path` and those above it. In a container the mount itself is
// the container's group.
template <typename Look>
void look_upwards(const std::string& mount, std::string path, const Look& look) {
  for (; !path.empty() && path != "/"; path.resize(path.rfind('/'))) look(mount + path);
  look(mount);
}

// Calls look(folder, version) for each group that has `controller`.
template <typename Look>
void each_group(const std::string& mount, const std::string& groups, const std::string& controller,
                const Look& look) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    // "0::/path" is version 2, "4:cpu,memory:/path" version 1.
    const size_t names = line.find(':'), path = line.find(":/");
    if (path == std::string::npos) continue;
    const std::string controllers = line.substr(names + 1, path - names - 1);
    const auto call = [&](int version) {
      return [&look, version](const std::string& folder) { look(folder, version); };
    };
    if (controllers.empty()) look_upwards(mount, line.substr(path + 1), call(2));
    if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    // Mounted under the names of all its controllers, and mostly linked under each.
    const std::string single = mount + "/" + controller, all = mount + "/" + controllers;
    look_upwards(std::filesystem::exists(single) ? single : all, line.substr(path + 1), call(1));
  }
}

// Names of the files of a memory group.
struct GroupFiles {
  const char *limit, *used, *reclaimable;
};
constexpr GroupFiles kVersion2 = {"/memory.max", "/memory.current", "inactive_file"};
constexpr GroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                  "total_inactive_file"};

void narrow(MemoryGroup& group, const std::string& folder, const GroupFiles& files) {
  const auto limit = number_file(folder + files.limit), used = number_file(folder + files.used);
  if (!limit) return;
  group.limit = std::min(group.limit, *limit);
  if (!used) return;
  const int64_t reclaimable = field(folder + "/memory.stat", files.reclaimable);
  group.margin = std::min(group.margin, std::max<int64_t>(0, *limit - *used + reclaimable));
}

// Processors on average; infinite without a quota. Files have microseconds of their time, and of a
// period.
double read_quota(const std::string& folder, int version) {
  int64_t time = -1, period = 0;
  if (version == 2) {
    std::ifstream in(folder + "/cpu.max");  // "150000 100000", "max 100000"
    if (!(in >> time >> period)) time = -1;
  } else {
    time = number_file(folder + "/cpu.cfs_quota_us").value_or(-1);
    period = number_file(folder + "/cpu.cfs_period_us").value_or(0);
  }
  if (time <= 0 || period <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(time) / static_cast<double>(period);
}

}  // namespace

MemoryGroup memory_group(const std::string& mount, const std::string& groups) {
  MemoryGroup group;
  each_group(mount, groups, "memory", [&](const std::string& folder, int version) {
    narrow(group, folder, version == 2 ? kVersion2 : kVersion1);
  });
  return group;
}

MemoryGroup memory_group() { return memory_group(kMount, own_groups()); }

double processor_quota(const std::string& mount, const std::string& groups) {
  double least = std::numeric_limits<double>::infinity();
  each_group(mount, groups, "cpu", [&](const std::string& folder, int version) {
    least = std::min(least, read_quota(folder, version));
  });
  return least;
}

double processor_quota() { return processor_quota(kMount, own_groups()); }

}  // namespace lra
