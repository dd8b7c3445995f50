// Trains the runs of a suite.
#pragma once

#include <string>
#include <vector>

#include "cli/suite_cells.h"

namespace lra::cli {

// The devices of the places where runs train at the same time: `jobs` of them, or one for each
// device; neighbors are on different devices.
std::vector<std::string> places_of(const std::vector<std::string>& devices, int jobs = 0);

// Trains the unfinished cells, each in a separate process, one in each place at a time, until a
// stop is requested. With several, each gets its share of the processor's cores (unless --threads
// says otherwise) and of the memory that is free now, and their progress bars are replaced by a
// line per cell and its warnings.
// - A failed cell continues from its checkpoint, whatever ended it; one without starts over.
// - A diverged cell stays as recorded, because the same seed would diverge again, bit for bit. It
//   runs again if its folder was removed.
// - A folder that another process has locked is not touched, whatever its record says.
void run_cells(std::vector<Cell>& cells, const std::string& data_root,
               const std::vector<std::string>& places, const Program& program);

// The suite's exit code: the first failed cell's code (2 for one in use or damaged), else 3 when
// one is not trained to its end, else 4 when one diverged, else 0. All these cells are named on
// standard error, also with --quiet.
ExitCode judge_cells(const std::vector<Cell>& cells);

}  // namespace lra::cli
