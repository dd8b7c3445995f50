// The number of threads to compute with unless the user states one.
#pragma once

#include <string>

namespace lra {

struct DefaultThreads {
  int count = 1;
  std::string limit;  // what decides: "CPU quota of 1.5 processors"
};

// OMP_NUM_THREADS; without it the processors that this process may run on (taskset, the cores of a
// batch job), or its CPU quota, rounded up, if that is less: more threads than a quota allows wait
// for each other while the kernel stops them.
DefaultThreads default_threads();

// The same of a process that may run on `processors`. `chosen` is OpenMP's number of threads where
// OMP_NUM_THREADS sets it, else 0; `quota` may be infinite (base/control_groups.h).
DefaultThreads default_threads(int chosen, int processors, double quota);

}  // namespace lra
