#include "base/clock.h"

#include <chrono>
#include <cmath>
#include <ctime>

namespace lra {

double monotonic_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string utc_text(double unix_time) {
  const auto seconds = static_cast<std::time_t>(std::floor(unix_time));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string utc_now() { return utc_text(unix_seconds()); }

}  // namespace lra
