// The stop flag of the program: signals set it, loops poll it.
//
// SIGINT, SIGTERM and SIGHUP (the terminal is gone) ask to stop with everything saved; a second one
// of them ends the process at once by the default action. SIGUSR1 and SIGUSR2 (batch systems send
// them before a time limit) ask to save and continue.
//
// In a job of a batch system, SIGUSR2 asks to stop like SIGTERM: the job script requeues the job.
// There, only a second SIGINT, a user's Ctrl-C, ends the process at once: a batch system sends
// SIGTERM more than once, to every process of a job, and ends slow processes with SIGKILL.
//
// The flag is the one piece of global state that signal handlers force on us.
#pragma once

#include <csignal>

namespace lra {

enum class StartedBy { kUser, kBatchSystem };

// Routes SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 to the flag. System calls are restarted. An
// ignored SIGHUP stays ignored, as `nohup` wants it. Unblocks save_signals(), of which one that
// came before is answered now.
void install_stop_handlers(StartedBy by);

// SIGUSR1 and SIGUSR2: to be blocked in a new process of this program until it listens, as their
// default action would end it.
sigset_t save_signals();

// Makes SIGINT, SIGTERM and SIGHUP end the process, at once if a stop was already requested: for
// work that has nothing to save.
void end_at_first_signal();

// The signal that asked to stop, or 0. Costs one relaxed load.
int stop_signal();
inline bool stop_requested() { return stop_signal() != 0; }

// The last SIGUSR1 or SIGUSR2 that asked to save since the last call, or 0; the request is taken,
// so it is answered once.
int take_save_request();

// Makes SIGINT, SIGTERM and SIGHUP do nothing from now on: all is saved, and the process is about
// to end.
void ignore_stop_signals();

// Sets the flag as if `signal` (one of the five) had arrived, and clears it: for tests.
void raise_stop_flag(int signal);
void clear_stop_flag();

// Ends what the handlers do, for a part of this program that is loaded or executed and will listen
// itself: until then, a request to stop ends the process, and one to save waits.
void stop_listening();

}  // namespace lra
