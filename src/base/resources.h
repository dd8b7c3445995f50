// Memory of this process and of the machine, in bytes, as Linux counts it.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace lra {

// Resident memory now, and the most since the start or the last reset that worked.
int64_t resident_bytes();
int64_t peak_resident_bytes();
// Makes the present size the peak. False when the kernel does not allow it; then the peak keeps
// counting from the start of the process.
bool reset_peak_resident_bytes();

// Memory of the machine, or of the control group (container) if that allows less.
int64_t total_memory_bytes();
// Memory that can still be allocated without swapping: MemAvailable, and the control group's
// margin.
int64_t available_memory_bytes();

// Addresses that this process may still take under its limit (ulimit -v); INT64_MAX without one.
int64_t available_address_bytes();

// The average number of busy processors of the machine while this call slept for `seconds`;
// 0 where /proc/stat cannot be read.
double busy_processors(double seconds);

// Measures how busy other programs keep this machine while the object lives.
class OtherPrograms {
 public:
  OtherPrograms();
  double seconds() const { return watch_.seconds(); }
  // True if they and `threads` of this program need more processors than the machine has, by more
  // than a twentieth of them and a quarter of one on average.
  bool disturb(int threads) const;

 private:
  double busy_seconds_;
  Stopwatch watch_;
};

}  // namespace lra
