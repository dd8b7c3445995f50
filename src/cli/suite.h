// lra suite run, also on behalf of `lra tune`.
#pragma once

#include <string>

#include "cli/command.h"

namespace lra::cli {

struct SuiteArguments {
  std::string file, data, out, only;
  int jobs = 1;
  bool watch = false, all = false;
};

// "--out", "--data", "--jobs" of the commands that train a suite.
void add_suite_options(CLI::App& command, SuiteArguments& arguments);

// Trains what is not finished, measures, prints the leaderboard and writes the report.
ExitCode run_suite(const Program& program, const SuiteArguments& arguments);

}  // namespace lra::cli
