#include "base/default_threads.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/control_groups.h"

namespace lra {

DefaultThreads default_threads() {
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const bool is_set = variable != nullptr && *variable != '\0';
  return default_threads(is_set ? omp_get_max_threads() : 0, omp_get_num_procs(),
                         processor_quota());
}

DefaultThreads default_threads(int chosen, int processors, double quota) {
  if (chosen > 0) return {chosen, "OMP_NUM_THREADS"};
  if (std::ceil(quota) >= processors) return {processors, "processors that this process may use"};
  std::ostringstream limit;
  limit << "CPU quota of " << quota << " processors";
  return {std::max(1, static_cast<int>(std::ceil(quota))), limit.str()};
}

}  // namespace lra
