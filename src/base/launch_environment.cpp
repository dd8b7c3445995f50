#include "base/launch_environment.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/parsed_number.h"
#include "base/quoted.h"

namespace lra {
namespace {

constexpr int64_t kMaxRanks = 65536;  // a batch has no more examples
constexpr const char* kLoopback = "127.0.0.1";

[[noreturn]] void refuse(const std::string& name, const std::string& what,
                         const std::string& expected) {
  throw Error({.where = "environment variable " + name,
               .what = what,
               .expected = expected,
               .advice = "start with torchrun or srun, or unset it"});
}

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  bool has(const char* name) const { return variables_(name) != nullptr; }

  std::string text(const char* name) const {
    const char* value = variables_(name);
    if (value == nullptr) refuse(name, "is not set", "set by the launcher, like the others");
    return value;
  }

  int64_t number(const char* name, int64_t least, int64_t most) const {
    const std::string value = text(name);
    const auto found = parsed_number<int64_t>(value);
    if (!found || *found < least || *found > most) {
      refuse(name, "is " + in_quotes(value, 100),
             "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return *found;
  }

  int64_t number_or(const char* name, int64_t absent, int64_t most) const {
    return has(name) ? number(name, 0, most) : absent;
  }

 private:
  const Variables& variables_;
};

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || c == ':' || c == '%';
  });
}

std::string host(const Reader& reader, const char* name) {
  const std::string value = reader.text(name);
  if (!is_host(value)) {
    refuse(name, "is " + in_quotes(value, 100), "the name or address of a host");
  }
  return value;
}

int64_t rank_below(const Reader& reader, const char* name, const char* count_name, int64_t count) {
  const int64_t rank = reader.number(name, 0, kMaxRanks - 1);
  if (rank < count) return rank;
  refuse(name, "is " + std::to_string(rank) + " and " + count_name + " " + std::to_string(count),
         "a rank below their number");
}

Launch of_torchrun(const Reader& reader) {
  Launch launch;
  launch.num_ranks = reader.number("WORLD_SIZE", 1, kMaxRanks);
  launch.rank = rank_below(reader, "RANK", "WORLD_SIZE", launch.num_ranks);
  launch.restarts = reader.number_or("TORCHELASTIC_RESTART_COUNT", 0, INT32_MAX);
  if (launch.num_ranks == 1) return launch;
  launch.address = host(reader, "MASTER_ADDR");
  launch.port = static_cast<uint16_t>(reader.number("MASTER_PORT", 1, UINT16_MAX));
  launch.store_is_hosted = reader.has("TORCHELASTIC_USE_AGENT_STORE") &&
                           reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return launch;
}

std::string slurm_address(const Reader& reader) {
  if (reader.has("MASTER_ADDR")) return host(reader, "MASTER_ADDR");
  for (const char* name : {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}) {
    if (!reader.has(name)) continue;
    if (reader.number(name, 1, kMaxRanks) == 1) return kLoopback;
    break;
  }
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST"}) {
    if (!reader.has(name)) continue;
    const std::string list = reader.text(name), first = first_host(list);
    if (first.empty()) {
      refuse(name, "is " + in_quotes(list, 100), "a list of hosts");
    }
    return first;
  }
  return reader.has("SLURM_LAUNCH_NODE_IPADDR") ? host(reader, "SLURM_LAUNCH_NODE_IPADDR")
                                                : kLoopback;
}

// Every step of every job has its own port, as far as there are enough; below those that systems
// give to outgoing connections.
uint16_t slurm_port(const Reader& reader) {
  if (reader.has("MASTER_PORT")) {
    return static_cast<uint16_t>(reader.number("MASTER_PORT", 1, UINT16_MAX));
  }
  constexpr int64_t kFirst = 10000, kPorts = 20000, kStepsOfJob = 31;
  const int64_t job = reader.number("SLURM_JOB_ID", 0, UINT32_MAX),
                step = reader.number("SLURM_STEP_ID", 0, UINT32_MAX);
  return static_cast<uint16_t>(kFirst + (job * kStepsOfJob + step) % kPorts);
}

Launch of_slurm(const Reader& reader) {
  const char* count_name =
      reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Launch launch;
  launch.num_ranks = reader.number(count_name, 1, kMaxRanks);
  launch.rank = rank_below(reader, "SLURM_PROCID", count_name, launch.num_ranks);
  if (launch.num_ranks == 1) return launch;
  launch.address = slurm_address(reader);
  launch.port = slurm_port(reader);
  return launch;
}

Launch read_ranks(const Reader& reader) {
  if (reader.has("RANK") || reader.has("WORLD_SIZE")) return of_torchrun(reader);
  // A batch script also has a SLURM_PROCID, but it is a single process, not a step.
  if (reader.has("SLURM_PROCID") && reader.has("SLURM_STEP_ID")) return of_slurm(reader);
  return {};
}

}  // namespace

std::string Launch::name() const {
  return "rank " + std::to_string(rank) + " of " + std::to_string(num_ranks);
}

std::string first_host(const std::string& list) {
  std::string first;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      first += list[i];
      continue;
    }
    const size_t close = list.find(']', i);
    if (close == std::string::npos) return "";
    const size_t length = std::min(list.find_first_of(",-]", i), close) - i - 1;
    const std::string number = list.substr(i + 1, length);
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return "";
    first += number;
    i = close;
  }
  return is_host(first) ? first : "";
}

Launch read_launch(const Variables& variables) {
  const Reader reader(variables);
  Launch launch = read_ranks(reader);
  if (launch.num_ranks > 1 && reader.has("GLOO_SOCKET_IFNAME")) {
    launch.interface = reader.text("GLOO_SOCKET_IFNAME");
  }
  return launch;
}

Launch launch_of_this_process() {
  return read_launch([](const char* name) { return std::getenv(name); });
}

}  // namespace lra
