#include "io/bus_error.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "base/error.h"

namespace lra {
namespace {

// Within a signal handler only system calls are made.
extern "C" void on_bus_error(int signal, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) {
    std::signal(signal, SIG_DFL);  // the access is made again on return
    return;
  }
  constexpr std::string_view kText =
      "lra: a file of the data or of a checkpoint can no longer be read: its device failed, or the "
      "file was truncated; check them with 'lra data check' and 'lra report --check'\n";
  if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) return ::_exit(1);
  ::_exit(static_cast<int>(ExitCode::kIoError));
}

}  // namespace

void report_unreadable_maps() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  LRA_CHECK_EQ(sigaction(SIGBUS, &action, nullptr), 0);
}

}  // namespace lra
