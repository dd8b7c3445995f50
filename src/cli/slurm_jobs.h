// Which runs of a suite were given to SLURM: a file for each job in the suite's folder.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace lra::cli {

struct SlurmArray {
  std::string id;                 // of the job
  std::vector<std::string> runs;  // Cell::run_name() of each task
};

// The suite's folder is `out`, and its slurm folder must exist. Throws lra::Error with exit
// code 74.
void write_array(const std::string& out, const SlurmArray& array);

// Every array that was written and not forgotten. Throws lra::Error for a damaged file.
std::vector<SlurmArray> written_arrays(const std::string& out);

// Runs of written_arrays. What SLURM has done with them since is not asked.
std::set<std::string> submitted_runs(const std::string& out);

// Runs that SLURM has yet to begin, is at, or will begin again, by what squeue says now. Arrays
// that it has nothing left to do of are forgotten. Throws lra::Error when squeue fails.
std::set<std::string> runs_in_queue(const std::string& out);

}  // namespace lra::cli
