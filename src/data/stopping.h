// Stop requests in loops that prepare data.
#pragma once

#include "base/error.h"
#include "base/stop_flag.h"

namespace lra {

// Throws lra::Error with exit code 3 when SIGINT or SIGTERM has arrived; the writers on the stack
// remove files that the same command cannot take over.
inline void throw_if_stopped() {
  if (!stop_requested()) return;
  throw Error({.what = "stopped by a signal before the dataset was complete",
               .advice = "run the same command again",
               .code = ExitCode::kStopped});
}

}  // namespace lra
