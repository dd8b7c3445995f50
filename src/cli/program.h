// The program as a function: flags, exit codes, and the only place where errors are caught.
//
// Goals of the room `cli`: an answer in 0.03 s to whatever needs no tensors, and one clear line for
// a mistake, with exit code 2. Non-goals: computation, settings that only flags can reach.
#pragma once

namespace lra::cli {

// The first names the Python in which this program restarts if it needs an interpreter, set by the
// installed package's launcher; the second tells that Python that it is needed.
inline constexpr const char *kInterpreterVariable = "LRA_INTERPRETER",
                            *kNeedsInterpreterVariable = "LRA_NEEDS_INTERPRETER";

// Runs a command and returns the exit code. Handlers of signals, the allocator of tensors and the
// treatment of denormal numbers are this program's from then on. `argv` ends with a null pointer.
int run_command(int argc, char** argv);

}  // namespace lra::cli

// Functions that `lra` takes from the library of everything (cli/compute.h).
extern "C" int lra_library_run(int argc, char** argv);
extern "C" const char* lra_library_revision();
