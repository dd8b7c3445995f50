// The batch script of a SLURM job array: one run of a suite is one task of the array.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lra::cli {

// What the scripts of a suite have in common. Paths are absolute.
struct SlurmJob {
  std::string name;                       // of the suite
  std::string program, suite, out, data;  // this program, the suite's file, its folder, the data
  std::string partition, account, time;   // as sbatch takes them; empty: the cluster's default
  std::vector<std::string> more_options;  // of sbatch, one each, with dashes
  int cpus = 1;                           // of each run
  int threads = 1;                        // of each run
  std::string device = "cpu";             // --device of each run
  int64_t array_limit = 0;                // runs at the same time; 0: no limit of ours
  int64_t signal_seconds = 60;            // before the time limit, to save in
};

// Where the scripts, the logs and what was submitted lie.
std::string slurm_folder(const std::string& out);

// The script whose task i does runs[i] (as Cell::run_name()), saves, stops and queues itself again
// at SIGUSR2, and goes on where it ended. Every word is quoted for whom it is meant. Throws
// lra::Error for text that sbatch cannot be given (control characters in an option, a backslash in
// `out`), and for a time limit that would end before a run has time to begin.
std::string slurm_script(const SlurmJob& job, const std::vector<std::string>& runs);

// Seconds of a time limit as sbatch takes it: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S. Nothing for
// other text and for 0, which is no limit.
std::optional<int64_t> slurm_seconds(const std::string& limit);

}  // namespace lra::cli
