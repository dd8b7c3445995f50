// A trace of some training steps for Perfetto (ui.perfetto.dev) or chrome://tracing, recorded by
// the library's own profiler: every operator, forward and backward, with the parts of a step above
// them.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string>

namespace lra::training {

// Gives `part` a name in the trace; costs nothing without one.
template <typename Part>
auto traced(const char* name, const Part& part) {
  RECORD_USER_SCOPE(name);
  return part();
}

struct ProfileOptions {
  std::string path;       // empty: no trace
  int64_t num_steps = 5;  // recorded, after two that warm up
};

class StepProfiler {
 public:
  // Throws lra::Error for a path that is a folder or whose folder cannot be written.
  explicit StepProfiler(ProfileOptions options);
  // A trace that is still being recorded is dropped.
  ~StepProfiler();
  StepProfiler(const StepProfiler&) = delete;
  StepProfiler& operator=(const StepProfiler&) = delete;

  // Starts and ends the recording; call it between any two steps. Returns "" or why there is no
  // trace: a file that cannot be written does not end the run.
  std::string next_step();
  // Writes the steps so far of a run that ends too early. Returns "" or why a requested trace is
  // missing.
  std::string finish();

 private:
  std::string save();

  const ProfileOptions options_;
  int64_t steps_seen_ = 0;
  bool recording_ = false;
};

}  // namespace lra::training
