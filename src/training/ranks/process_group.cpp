#include "training/ranks/process_group.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/clock.h"
#include "base/hash.h"
#include "base/stop_flag.h"
#include "base/text_format.h"

namespace lra::training {
namespace {

using std::chrono::milliseconds;
using StorePointer = c10::intrusive_ptr<c10d::Store>;

constexpr milliseconds kPoll{20};
constexpr milliseconds kConnectSlice{1000};
constexpr int kFatalOnly = 3;  // level of c10's log
// Once a rank is lost, asks the store what others know about it, without waiting.
constexpr milliseconds kLastQuestion{2000};

std::string seconds_text(milliseconds time) {
  return fixed(static_cast<double>(time.count()) / 1000, time.count() % 1000 == 0 ? 0 : 1) + " s";
}

Error failure(const Launch& launch, const std::string& what, const std::string& advice) {
  return Error(
      {.where = launch.name(), .what = what, .advice = advice, .code = ExitCode::kIoError});
}

// Messages of c10d span lines and name its source files.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return printable(text.substr(0, std::min<size_t>(text.find('\n'), 200)));
}

void refuse_when_stopped(const Launch& launch) {
  if (!stop_requested()) return;
  throw Error({.where = launch.name(),
               .what = "stopped by a signal before all ranks had connected",
               .code = ExitCode::kStopped});
}

// Connecting cannot be stopped by a signal, so that it is tried for a slice of the time only, again
// and again.
c10::intrusive_ptr<c10d::TCPStore> connect(const Launch& launch, c10d::TCPStoreOptions options,
                                           milliseconds timeout) {
  const Stopwatch watch;
  for (;;) {
    const milliseconds left = timeout - milliseconds(static_cast<int64_t>(watch.seconds() * 1000));
    options.timeout = std::clamp(left, milliseconds(1), kConnectSlice);
    try {
      return c10::make_intrusive<c10d::TCPStore>(launch.address, options);
    } catch (const std::exception&) {
      refuse_when_stopped(launch);
      if (left <= kConnectSlice) throw;
    }
    std::this_thread::sleep_for(kPoll);  // some failures come at once
  }
}

StorePointer open_store(const Launch& launch, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = launch.port;
  options.isServer = !launch.store_is_hosted && launch.rank == 0;
  options.waitWorkers = false;
  options.timeout = timeout;
  const std::string place = launch.address + " port " + std::to_string(launch.port);
  try {
    auto store = options.isServer ? c10::make_intrusive<c10d::TCPStore>(launch.address, options)
                                  : connect(launch, options, timeout);
    store->setTimeout(timeout);
    return c10::make_intrusive<c10d::PrefixStore>("lra/attempt_" + std::to_string(launch.restarts),
                                                  store);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (options.isServer) {
      throw failure(launch, "cannot listen at " + place + " (" + first_line(error) + ")",
                    "set MASTER_PORT to a port that is free");
    }
    throw failure(launch, "cannot reach rank 0 at " + place + " within " + seconds_text(timeout),
                  "is it running, and are MASTER_ADDR and MASTER_PORT right?");
  }
}

std::string here_key(int64_t rank) { return "here/" + std::to_string(rank); }

std::string missing_ranks(c10d::Store& store, int64_t count) {
  std::string list;
  for (int64_t rank = 0; rank < count; ++rank) {
    if (!store.check({here_key(rank)})) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  }
  return list;
}

// c10d's own wait cannot be stopped by a signal.
void wait_for_all(c10d::Store& store, const Launch& launch, milliseconds timeout) {
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < launch.num_ranks; ++rank) keys.push_back(here_key(rank));
  const Stopwatch watch;
  store.set(here_key(launch.rank), std::string("yes"));
  while (!store.check(keys)) {
    refuse_when_stopped(launch);
    if (watch.seconds() * 1000 > static_cast<double>(timeout.count())) {
      throw failure(launch,
                    "did not connect within " + seconds_text(timeout) + ": rank " +
                        missing_ranks(store, launch.num_ranks),
                    "start as many processes as there are ranks; --rank-timeout waits longer");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

// c10d would warn, with stack frames, about failures that our own messages report.
void quiet_c10d() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL")) {
    c10::initLogging();
  } else {
    FLAGS_caffe2_log_level = kFatalOnly;
  }
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

std::shared_ptr<gloo::transport::Device> device_of(const Launch& launch) {
  using c10d::ProcessGroupGloo;
  if (!launch.interface.empty()) {
    return ProcessGroupGloo::createDeviceForInterface(launch.interface);
  }
  return is_loopback(launch.address) ? ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                     : ProcessGroupGloo::createDefaultDevice();
}

c10::intrusive_ptr<c10d::Backend> open_backend(const StorePointer& store, const Launch& launch,
                                               milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(device_of(launch));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(launch.rank),
                                                     static_cast<int>(launch.num_ranks), options);
}

// Equal for processes on one machine. A double holds it exactly.
double machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;
  boot += std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
  return static_cast<double>(hash64(boot) >> 12);
}

class C10dRanks : public Ranks {
 public:
  C10dRanks(StorePointer store, const Launch& launch, milliseconds timeout,
            const OpenBackend& for_devices)
      : Ranks(launch.rank, launch.num_ranks),
        timeout_(timeout),
        store_(std::move(store)),
        of_host_(open_backend(store_, launch, timeout)),
        machines_(static_cast<size_t>(count())) {
    if (for_devices) of_devices_ = for_devices(store_, launch, timeout);
    machines_[static_cast<size_t>(rank())] = machine_id();
    sum(machines_);
  }

  // Without waiting for ranks that may have ended by an error.
  ~C10dRanks() override { give_up_devices(); }

  int64_t count_on_this_machine() const override {
    return std::ranges::count(machines_, machines_[static_cast<size_t>(rank())]);
  }

  void begin_sum(const at::Tensor& x) override {
    const bool stays = of_devices_ && !x.is_cpu();
    const at::Tensor summed = stays ? x : x.cpu();
    std::vector<at::Tensor> one = {summed};
    try {
      pending_.push_back({(stays ? of_devices_ : of_host_)->allreduce(one), x, summed});
    } catch (const std::exception&) {
      throw LostRank(name(), what_was_lost(0));
    }
  }

  void wait() override {
    const Stopwatch watch;
    auto pending = std::exchange(pending_, {});
    // A lost rank breaks its connections in main memory at once; a device would wait for it.
    std::ranges::stable_partition(pending, [](const Sum& sum) { return sum.summed.is_cpu(); });
    try {
      for (const Sum& sum : pending) sum.work->wait();
    } catch (const std::exception&) {
      throw LostRank(name(), what_was_lost(watch.seconds()));
    }
    for (const Sum& sum : pending) {
      if (!sum.values.is_same(sum.summed)) sum.values.copy_(sum.summed);
    }
  }

 private:
  std::string other_rank() const {
    return count() == 2 ? "rank " + std::to_string(1 - rank()) : "another rank";
  }

  void give_up_devices() {
    if (!of_devices_) return;
    try {
      of_devices_->abort();
    } catch (const std::exception&) {
      // There is nothing left to end.
    }
    of_devices_ = {};
  }

  // The first rank to find out tells the others, whose connections break when it leaves.
  std::string what_was_lost(double waited_s) {
    const bool is_silent = waited_s * 1000 >= 0.9 * static_cast<double>(timeout_.count());
    const std::string mine = is_silent
                                 ? other_rank() + " did not answer within " + seconds_text(timeout_)
                                 : other_rank() + " was lost";
    std::string first = mine;
    try {
      store_->setTimeout(kLastQuestion);
      first = store_->compareSet("lost", std::string(), mine);
    } catch (const std::exception&) {
      // The store went with the rank.
    }
    give_up_devices();
    return first;
  }

  const milliseconds timeout_;
  const StorePointer store_;
  const c10::intrusive_ptr<c10d::Backend> of_host_;
  c10::intrusive_ptr<c10d::Backend> of_devices_;  // null: of_host_ for all
  std::vector<double> machines_;                  // of every rank
  struct Sum {
    c10::intrusive_ptr<c10d::Work> work;
    at::Tensor values, summed;  // the caller's tensor, and the same or its copy on the CPU
  };
  std::vector<Sum> pending_;
};

}  // namespace

std::unique_ptr<Ranks> join_ranks_at(StorePointer store, const Launch& launch, milliseconds timeout,
                                     const OpenBackend& for_devices) {
  try {
    wait_for_all(*store, launch, timeout);
    return std::make_unique<C10dRanks>(std::move(store), launch, timeout, for_devices);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw failure(launch, "cannot connect to the other ranks (" + first_line(error) + ")",
                  "GLOO_SOCKET_IFNAME names the network interface to use");
  }
}

std::unique_ptr<Ranks> join_ranks(const Launch& launch, milliseconds timeout,
                                  const OpenBackend& for_devices) {
  if (launch.num_ranks == 1) return std::make_unique<OneRank>();
  quiet_c10d();
  return join_ranks_at(open_store(launch, timeout), launch, timeout, for_devices);
}

}  // namespace lra::training
