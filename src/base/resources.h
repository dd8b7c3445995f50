// Memory of this process and of the machine, in bytes, as Linux counts it.
#pragma once

#include <cstdint>

namespace lra {

// Resident memory now, and the most since the start or the last reset that worked.
int64_t resident_bytes();
int64_t peak_resident_bytes();
// Makes the present size the peak. False when the kernel does not allow it; then the peak keeps
// counting from the start of the process.
bool reset_peak_resident_bytes();

// Of the machine, or of the control group (container) when that allows less.
int64_t total_memory_bytes();
// What can still be allocated without swapping: MemAvailable, and the control group's margin.
int64_t available_memory_bytes();

}  // namespace lra
