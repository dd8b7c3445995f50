// lra suite submit: the runs of a suite as job arrays of a batch system.
#pragma once

#include "cli/command.h"

namespace lra::cli {

void add_suite_submit(CLI::App& suite, Program& program);

}  // namespace lra::cli
