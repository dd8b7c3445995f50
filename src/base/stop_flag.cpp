#include "base/stop_flag.h"

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace lra {
namespace {

std::atomic<int> stop{0}, save{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait for a lock");

bool ask_to_stop(int signal) { return stop.exchange(signal, std::memory_order_relaxed) == 0; }

// The signal is blocked while its handler runs: it is delivered, with the default action, on
// return.
void end_at_once(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

extern "C" void on_signal(int signal) {
  if (signal == SIGUSR1 || signal == SIGUSR2) {
    save.store(signal, std::memory_order_relaxed);
  } else if (!ask_to_stop(signal)) {
    end_at_once(signal);
  }
}

extern "C" void on_signal_in_batch_job(int signal) {
  if (signal == SIGUSR1) {
    save.store(signal, std::memory_order_relaxed);
  } else if (!ask_to_stop(signal) && signal == SIGINT) {
    end_at_once(signal);
  }
}

}  // namespace

void install_stop_handlers(StartedBy by) {
  struct sigaction action {};
  action.sa_handler = by == StartedBy::kUser ? on_signal : on_signal_in_batch_job;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    struct sigaction before {};
    LRA_CHECK_EQ(sigaction(signal, nullptr, &before), 0);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;
    LRA_CHECK_EQ(sigaction(signal, &action, nullptr), 0);
  }
  const sigset_t saves = save_signals();
  LRA_CHECK_EQ(sigprocmask(SIG_UNBLOCK, &saves, nullptr), 0);
}

sigset_t save_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  return signals;
}

void end_at_first_signal() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    LRA_CHECK_EQ(sigaction(signal, nullptr, &now), 0);
    if (now.sa_handler != SIG_IGN) std::signal(signal, SIG_DFL);
  }
  if (stop_requested()) end_at_once(stop_signal());
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

void stop_listening() {
  end_at_first_signal();
  const sigset_t saves = save_signals();
  sigprocmask(SIG_BLOCK, &saves, nullptr);
  if (const int signal = take_save_request()) std::raise(signal);
}

}  // namespace lra
