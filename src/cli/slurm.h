// A suite as SLURM job arrays: one run is one task of the array. Their script, and which runs were
// given to SLURM: a file for each job in the suite's folder.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace lra::cli {

// Settings shared by the scripts of a suite. Paths are absolute.
struct SlurmJob {
  std::string name;                  // of the suite
  std::vector<std::string> program;  // the words that begin a command of this program
  std::string suite, out, data;      // the suite's file, its folder, the data
  // As sbatch takes them; empty: the cluster's default.
  std::string partition, account, time, gres;
  std::vector<std::string> more_options;  // of sbatch, one each, with dashes
  int cpus = 1;                           // of each run
  int threads = 1;                        // of each run
  std::string device = "cpu";             // --device of each run
  int64_t array_limit = 0;                // runs at the same time; 0: no limit
  int64_t signal_seconds = 60;            // before the time limit, to save in
};

// The folder of the scripts, the logs and the list of submitted jobs.
std::string slurm_folder(const std::string& out);

// The script whose task i trains runs[i] (as Cell::run_name()), saves, stops and requeues itself at
// SIGUSR2, and resumes where it stopped. Every word is quoted for its reader. Throws lra::Error for
// text that sbatch does not accept (control characters in an option, a backslash in `out`), and for
// a time limit that would end before a run can begin.
std::string slurm_script(const SlurmJob& job, const std::vector<std::string>& runs);

// The script of a job that begins in the folder in which `words` (program and arguments) were
// typed, and types them again.
std::string next_round_script(const SlurmJob& job, const std::vector<std::string>& words);

struct SlurmArray {
  std::string id = {};                 // of the job; empty: not submitted
  std::vector<std::string> runs = {};  // Cell::run_name() of each task
  std::string script = {};             // where it was just written
};

// The suite's folder is `out`, and its slurm folder must exist. Throws lra::Error with exit
// code 74.
void write_array(const std::string& out, const SlurmArray& array);

// Runs of the arrays that were written and not forgotten, regardless of what SLURM has done with
// them since. Throws lra::Error for a damaged file.
std::set<std::string> submitted_runs(const std::string& out);

// Runs that SLURM has yet to begin, is running, or will begin again, according to squeue. Arrays
// without remaining tasks are forgotten. Throws lra::Error if squeue fails.
std::set<std::string> runs_in_queue(const std::string& out);

}  // namespace lra::cli
