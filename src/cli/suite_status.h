// How far the runs of a suite are, read from their folders: also while other processes, on this
// machine or on another with the same file system, work on them.
#pragma once

#include <string>

#include "cli/suite_file.h"

namespace lra::cli {

// Prints one line per run, or JSON, to standard output.
void show_cells(const Suite& suite, const std::string& out, bool json);

// Draws the table anew every two seconds until no run is under way, and no suite or batch system is
// there to begin one that waits; or until it is asked to stop.
ExitCode watch_cells(const Suite& suite, const std::string& out);

}  // namespace lra::cli
