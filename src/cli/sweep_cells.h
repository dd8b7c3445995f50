// The runs of a suite with a sweep: every model tries the same settings, each with all seeds. A try
// stops before its test; with halving, also at milestones, after which only the better ones go on.
// The try with the best mean validation accuracy of all seeds is chosen: its runs leave the folder
// kTriesFolder, and only they are tested.
#pragma once

#include <functional>
#include <vector>

#include "cli/suite_cells.h"

namespace lra::cli {

// Decides what is next for every cell, from the records that were last read: sets `goal` of those
// that train, `is_chosen`, and the state "tried" of the others. The answer is the same for
// everybody who reads the same records. Throws lra::Error for a sweep that cannot compare: a
// validation set that is the test set, or halving without a validation before the end.
void plan_sweep(const Suite& suite, std::vector<Cell>& cells);

// True for a try that has what it is compared by.
bool has_reached_goal(const Cell& cell);

// Moves the runs of chosen settings to where those of a suite without a sweep are, with the count
// of tries in their records, and those that are no longer chosen back; a model of which another
// process has a run stays for the next time. For the holder of the suite's lock.
void settle_choice(const Suite& suite, std::vector<Cell>& cells);

// Calls `train` with the cells that are due, and plans again, until none is left that `train` did
// not fail to bring to its goal, or a stop is requested.
void run_sweep(const Suite& suite, std::vector<Cell>& cells,
               const std::function<void(std::vector<Cell>& round)>& train);

// A row for each try, the best of each model first: its settings, mean validation accuracy of the
// seeds, and what became of it.
std::string sweep_table(const Suite& suite, const std::vector<Cell>& cells);

}  // namespace lra::cli
