// Time: a clock that never jumps for durations, the calendar for records.
#pragma once

#include <string>

namespace lra {

// Seconds since some fixed moment; never goes back.
double monotonic_seconds();

// Seconds since 1970-01-01 UTC.
double unix_seconds();

// "2024-05-01T12:34:56Z"; the fraction is cut off.
std::string utc_text(double unix_time);
std::string utc_now();

// Seconds since it was made or restarted.
class Stopwatch {
 public:
  Stopwatch() : start_(monotonic_seconds()) {}
  double seconds() const { return monotonic_seconds() - start_; }
  void restart() { start_ = monotonic_seconds(); }

 private:
  double start_;
};

}  // namespace lra
