// Processes that this one starts. This program, run again with other arguments: every cell of a
// suite and every measurement is its own process, so that memory figures belong to one run and a
// crash ends only one cell. And other people's programs, run to their end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace lra::cli {

// Throws lra::Error when this process is one of several ranks: a child takes over the environment,
// and would look for the others.
void refuse_ranks();

// The words that begin a command of this program: `program`, or those of the Python that it runs
// in.
std::vector<std::string> words_of_self(const std::string& program);

class MemoryFile;

struct ChildResult {
  int exit_code = 0;   // 128 + signal when a signal ended it
  std::string output;  // standard output
  // The message that this program sent by tell_parent(), or empty: its standard error goes where
  // ours goes. Another program's standard error, as one line.
  std::string error;
};

// Processes that run at the same time. Each reads nothing (/dev/null) and has its own process
// group: Ctrl-C in the terminal reaches only us, and is forwarded as one SIGTERM, so that the child
// is asked once. SIGUSR1 and SIGUSR2 are forwarded unchanged, to the children that were running
// when they arrived. Those that still run get SIGTERM when this process ends.
class Children {
 public:
  // Starts "lra ARGUMENTS...". Throws lra::Error: 74 when no process can be started, 2 when this
  // process is one of several ranks.
  void start(size_t id, const std::vector<std::string>& arguments);
  size_t size() const { return children_.size(); }

  struct Ended {
    size_t id;
    ChildResult result;
  };
  // Waits until one of them, of which there must be one, has ended, and calls `meanwhile` every 20
  // ms. Throws lra::Error (74) when an output cannot be read.
  Ended wait_for_one(const std::function<void()>& meanwhile = {});

 private:
  struct Child {
    size_t id;
    int process;
    std::shared_ptr<const MemoryFile> output, errors;
    bool told_to_stop = false;
  };
  void hand_signals_on();

  std::vector<Child> children_;
};

// Runs one process and waits for it.
ChildResult run_self(const std::vector<std::string>& arguments);

// Runs words[0], searched on PATH, with the other words as its arguments and nothing on standard
// input. Throws lra::Error: exit code 2 if there is no such program, else 74.
ChildResult run_program(const std::vector<std::string>& words);

// Makes this process get SIGTERM when its parent ends for any reason, so that it saves and stops
// instead of running on unnoticed. Call once at the start, from the thread that runs the program.
// Does nothing unless run_self started this process.
void follow_parent();

// Hands the reason of a failure to the parent, which waits for this process to end. Does nothing
// unless run_self started this process.
void tell_parent(const std::string& error);

// The code for us to end with when a child failed: its own where it has a meaning (2, 4, 70, 74), 2
// after SIGKILL, which is how running out of memory looks from outside, and 70 for anything else.
ExitCode failure_code(int child_exit_code);

// "exit code 74", "signal 9 (killed, as when memory runs out)".
std::string describe_end(int child_exit_code);

}  // namespace lra::cli
