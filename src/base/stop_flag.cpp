#include "base/stop_flag.h"

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace lra {
namespace {

std::atomic<int> stop{0}, save{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait for a lock");

extern "C" void on_signal(int signal) {
  if (signal == SIGUSR1 || signal == SIGUSR2) {
    save.store(signal, std::memory_order_relaxed);
    return;
  }
  if (stop.exchange(signal, std::memory_order_relaxed) == 0) return;
  // The second request. The signal is blocked while its handler runs: it is delivered, with the
  // default action, on return.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    struct sigaction before {};
    LRA_CHECK_EQ(sigaction(signal, nullptr, &before), 0);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    LRA_CHECK_EQ(sigaction(signal, &action, nullptr), 0);
  }
}

int stop_signal() { return stop.load(std::memory_order_relaxed); }

int take_save_request() {
  // The load keeps the common case free of a locked instruction.
  if (save.load(std::memory_order_relaxed) == 0) return 0;
  return save.exchange(0, std::memory_order_relaxed);
}

void ignore_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
}

void raise_stop_flag(int signal) {
  const bool saves = signal == SIGUSR1 || signal == SIGUSR2;
  LRA_CHECK(saves || signal == SIGINT || signal == SIGTERM || signal == SIGHUP);
  (saves ? save : stop).store(signal, std::memory_order_relaxed);
}

void clear_stop_flag() {
  stop.store(0, std::memory_order_relaxed);
  save.store(0, std::memory_order_relaxed);
}

}  // namespace lra
