// Ranks that are threads of the test, over real connections.
#pragma once

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <csignal>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "training/ranks/process_group.h"
#include "training/run/test_runs.h"

namespace lra::training {

// Runs `work` on every rank at the same time; throws what the lowest rank that failed has thrown.
inline void on_ranks(int64_t count, const std::function<void(Ranks&)>& work,
                     const OpenBackend& for_devices = {}) {
  std::signal(SIGPIPE, SIG_IGN);  // as in lra train: a lost rank is an error of the others
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      const OneThread one_thread;
      try {
        const Launch launch{.rank = rank, .num_ranks = count, .address = "127.0.0.1"};
        const auto ranks = join_ranks_at(store, launch, std::chrono::seconds(60), for_devices);
        work(*ranks);
      } catch (...) {
        failures[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace lra::training
