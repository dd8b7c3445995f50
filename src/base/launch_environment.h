// Rank of this process among those of its run, as torchrun and Slurm's srun state it in the
// environment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lra {

struct Launch {
  int64_t rank = 0, num_ranks = 1;
  // Rendezvous of the ranks; unset with one rank.
  std::string address = {};
  uint16_t port = 0;
  // The launcher keeps the store at that place, so that every rank is a client of it; else rank 0
  // keeps it.
  bool store_is_hosted = false;
  // The network interface to use (GLOO_SOCKET_IFNAME); empty: that of this machine's name.
  std::string interface = {};
  // Restarts so far by a launcher that starts all ranks again when one is lost, and keeps its store
  // meanwhile.
  int64_t restarts = 0;

  // "rank 1 of 4"
  std::string name() const;
};

// The value of a variable, or null when it is not set.
using Variables = std::function<const char*(const char* name)>;

// torchrun: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and if they are set
// TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT. Otherwise a step of srun, which
// SLURM_STEP_ID distinguishes from a batch script: SLURM_PROCID, SLURM_STEP_NUM_TASKS or
// SLURM_NTASKS, SLURM_JOB_ID; the ranks meet at the first host of
// SLURM_STEP_NODELIST or SLURM_NODELIST, else at SLURM_LAUNCH_NODE_IPADDR, and on this machine when
// the step has one node. One rank if there are no such variables. Throws lra::Error for values that
// make no sense or contradict each other.
Launch read_launch(const Variables& variables);

// The launch of this process.
Launch launch_of_this_process();

// "node03" for "node[03-07,11],other[1-2]"; empty for text that is not a list of hosts.
std::string first_host(const std::string& list);

}  // namespace lra
