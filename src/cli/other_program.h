// Other people's programs, run to their end.
#pragma once

#include <string>
#include <vector>

namespace lra::cli {

struct ProgramEnd {
  int exit_code = 0;   // 128 + signal when a signal ended it
  std::string output;  // standard output
  std::string errors;  // standard error, as one line
};

// Runs words[0], looked for on PATH, with the other words as its arguments and nothing on standard
// input. Throws lra::Error: exit code 2 when there is no such program, else 74.
ProgramEnd run_program(const std::vector<std::string>& words);

}  // namespace lra::cli
