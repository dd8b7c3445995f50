// lra suite run, also on behalf of `lra tune`.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace lra::cli {

struct SuiteArguments {
  std::string file, data, out, only;
  std::vector<std::string> devices;  // of the runs; empty: --device
  int jobs = 0;                      // 0: one for each device
  bool watch = false, all = false;
};

// "--out", "--data", "--jobs", "--devices" of the commands that train a suite. What these compute
// themselves is done on the first of the devices.
void add_suite_options(CLI::App& command, SuiteArguments& arguments, CommonOptions& common);

// Trains what is not finished, measures, prints the leaderboard and writes the report.
ExitCode run_suite(const Program& program, const SuiteArguments& arguments);

}  // namespace lra::cli
