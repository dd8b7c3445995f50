#include "io/bus_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace lra {
namespace {

// Within a signal handler: no memory is allocated, and only system calls are made.

// The bytes of /proc/self/maps, one at a time.
class Maps {
 public:
  Maps() : fd_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~Maps() { ::close(fd_); }
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;

  // The next one, or 0 at the end.
  char next() {
    if (at_ == filled_) {
      const ssize_t got = ::read(fd_, buffer_.data(), buffer_.size());
      if (got <= 0) return 0;
      at_ = 0;
      filled_ = static_cast<size_t>(got);
    }
    return buffer_[at_++];
  }

  // A hexadecimal number and the character after it.
  uintptr_t number() {
    uintptr_t value = 0;
    for (;;) {
      const char c = next();
      if (c >= '0' && c <= '9') {
        value = value * 16 + static_cast<uintptr_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value * 16 + static_cast<uintptr_t>(c - 'a' + 10);
      } else {
        return value;
      }
    }
  }

 private:
  const int fd_;
  std::array<char, 4096> buffer_{};
  size_t at_ = 0, filled_ = 0;
};

// The file that is mapped at `address`, written to `out`; empty when none is. A line is
// "begin-end access offset device inode   /path".
std::string_view file_at(uintptr_t address, std::span<char> out) {
  Maps maps;
  for (;;) {
    const uintptr_t begin = maps.number(), end = maps.number();
    if (end == 0) return {};
    size_t length = 0;
    bool in_path = false;
    for (char c = maps.next(); c != '\n' && c != 0; c = maps.next()) {
      in_path = in_path || c == '/';
      // The device, "00:1f", and the access, "r--s", have no slash, so the first slash begins the
      // path.
      if (in_path && length < out.size()) out[length++] = c;
    }
    if (begin <= address && address < end) return {out.data(), length};
  }
}

void write_text(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody is left to be told
}

extern "C" void on_bus_error(int signal, siginfo_t* info, void*) {
  std::array<char, PATH_MAX> buffer;
  const std::string_view path = info->si_code == BUS_ADRERR
                                    ? file_at(reinterpret_cast<uintptr_t>(info->si_addr), buffer)
                                    : std::string_view();
  if (path.empty()) {
    std::signal(signal, SIG_DFL);  // the access is made again on return
    return;
  }
  static std::atomic_flag is_told = ATOMIC_FLAG_INIT;
  while (is_told.test_and_set()) ::pause();  // another thread is about to end the process
  write_text("lra: ");
  write_text(path);
  write_text(": can no longer be read: the device failed, or the file was truncated\n");
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
