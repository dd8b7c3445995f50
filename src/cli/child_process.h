// This program, run again with other arguments: every cell of a suite and every measurement is a
// process of its own, so that memory figures belong to one run and a crash ends one cell only.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lra::cli {

struct ChildResult {
  int exit_code = 0;   // 128 + signal when a signal ended it
  std::string output;  // standard output; standard error goes where ours goes
};

// Runs "lra ARGUMENTS...". A stop request is handed on as SIGTERM, and waited for.
ChildResult run_self(const std::vector<std::string>& arguments);

}  // namespace lra::cli
