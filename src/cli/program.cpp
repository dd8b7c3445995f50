#include "cli/program.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>

#include "base/config.h"
#include "base/default_threads.h"
#include "base/parallel.h"
#include "base/quoted.h"
#include "base/revision.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "cli/child_process.h"
#include "cli/command.h"
#include "cli/compute.h"
#include "cli/device.h"
#include "cli/terminal.h"
#include "kernels/flush_denormals.h"
#include "mixers/python_layer.h"

// In a build that counts what tests reach; otherwise null.
extern "C" int __llvm_profile_write_file() __attribute__((weak));

namespace lra::cli {
namespace {

// Temporaries of many megabytes come and go in every step. Handing their pages back to the system
// and faulting them in again costs six times the work done on them (docs/numerics.md), so the heap
// keeps them.
void keep_pages_between_steps() {
  constexpr int kThreshold = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kThreshold);
  mallopt(M_TRIM_THRESHOLD, kThreshold);
  mallopt(M_TOP_PAD, 64 << 20);
}

// `asked` 0: the default. LibTorch's own is kept where it is not more: MKL's is that of cores, of
// which each may be two processors.
int use_threads(int asked) {
  const int count = asked > 0 ? asked : default_threads().count;
  if (asked == 0 && count >= num_threads()) return num_threads();
  set_num_threads(count);
  return count;
}

// Returns the exit code.
int complain(const std::string& text, ExitCode code = ExitCode::kUserError) {
  std::fprintf(stderr, "lra: %s\n", text.c_str());
  tell_parent(text);
  return static_cast<int>(code);
}

// CLI11's messages span lines and do not say what was meant.
int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  return complain(printable(usage_message(app, error)) +
                  "; see 'lra --help' or 'lra help COMMAND'");
}

// An unset shell variable leaves an empty word instead of a path, which could lead anywhere, and a
// quoted ~ would be the name of a folder.
void refuse_odd_words(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& word : option->results()) {
      if (word.empty()) {
        refuse(option->get_name(), "is empty", "a value", "is a shell variable unset?");
      }
      if (word.starts_with('~')) {
        refuse(option->get_name(),
               in_quotes(word) + " begins with a ~ that the shell did not replace", "a path",
               "write $HOME for it, or leave out the quotes and the =");
      }
    }
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_odd_words(*command);
}

// If 0 to 2 are closed, the next files would get these numbers, and messages would go into them.
// Opened the wrong way round, so that a result that is written there is missed.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

constexpr const char* kExamples = R"(Examples:
  lra list                                      tasks, models, presets
  lra train listops transformer --preset small  make the data, train, test; Ctrl-C saves
  lra train --resume runs/listops-transformer-small-s0
  lra report runs --out report.html             a leaderboard of all runs
  lra help listops                              settings of a task; also: a model, a command,
                                                a setting (train.steps)
  lra data import text aclImdb_v1.tar.gz --out data/text
  lra data import custom train.csv test.csv --out data/mine   data of your own: lra help custom
  lra train custom:mine transformer

Exit codes: 0 done, 2 a mistake in the input, 3 stopped by a signal, 4 the loss became NaN or infinite,
70 an internal error, 74 a disk, the network or another process failed.)";

void add_commands(CLI::App& app, Program& program) {
  app.require_subcommand(0, 1);
  app.formatter(help_formatter());
  app.footer(kExamples);
  app.set_version_flag("--version", lra_version());
  // --help lists them in this order.
  for (AddCommand* add : {add_train, add_eval, add_export, add_analyze, add_reproduce, add_suite,
                          add_tune, add_report, add_data, add_bench, add_model, add_mixer, add_list,
                          add_help, add_info, add_completion}) {
    add(app, program);
  }
}

// LibTorch reports a lack of memory in the message.
bool is_out_of_memory(const std::exception& error) {
  const std::string_view text = error.what();
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const std::length_error*>(&error) != nullptr ||
         text.find("out of memory") != std::string_view::npos ||
         text.find("allocate memory") != std::string_view::npos ||
         text.find("Storage size calculation overflowed") != std::string_view::npos;
}

ExitCode run(CLI::App& app, Program& program) {
  if (!program.action) {
    std::printf("%s", app.help().c_str());
    return ExitCode::kDone;
  }
  const int threads = use_threads(program.common.threads);
  install_stop_handlers(std::getenv("SLURM_JOB_ID") ? StartedBy::kBatchSystem : StartedBy::kUser);
  follow_parent();
  // A login node needs no GPU to submit runs that use one.
  const CLI::App* suite = app.get_subcommand("suite");
  const bool submits = suite->parsed() && suite->get_subcommand("submit")->parsed();
  check_device_name(program.common.device);
  if (!submits) program.common.device = find_device(program.common.device);
  start_tensors(program.common.device, threads);
  return program.action();
}

// Runs the same command in the interpreter that the launcher of an installed package names. Returns
// if there is none.
void start_again_in_interpreter(char** argv) {
  const char* interpreter = std::getenv(kInterpreterVariable);
  if (!interpreter || mixers::has_interpreter()) return;
  std::string program = interpreter, flag = "-m", module = "lra";
  std::vector<char*> words = {program.data(), flag.data(), module.data()};
  for (char** word = argv + 1; *word; ++word) words.push_back(*word);
  words.push_back(nullptr);
  std::fflush(stdout);
  ::setenv(kNeedsInterpreterVariable, "1", 1);
  stop_listening();
  ::execv(interpreter, words.data());
}

int run_and_report(int argc, char** argv) {
  open_standard_streams();
  // A write beyond the limit on the size of files (ulimit -f) would end the program without a word;
  // now it fails like one on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  // Numbers below the smallest normal one are 0 in this thread and in all that it makes: a sharp
  // softmax is full of them, and Intel processors multiply them in microcode.
  const kernels::FlushDenormals flush_denormals;
  keep_pages_between_steps();
  CLI::App app("Long Range Arena: the benchmark for efficient transformers", "lra");
  Program program;
  program.common.argv.assign(argv, argv + argc);
  add_commands(app, program);
  try {
    app.parse(argc, argv);
    refuse_odd_words(app);
    const ExitCode code = run(app, program);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw Error({.where = "standard output",
                   .what = "the result cannot be written",
                   .advice = "is the disk full?",
                   .code = ExitCode::kIoError});
    }
    return static_cast<int>(code);
  } catch (const NeedsTensors&) {  // below
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  } catch (const mixers::NeedsInterpreter& error) {
    start_again_in_interpreter(argv);
    return complain(error.what(), error.code());
  } catch (const Error& error) {
    return complain(error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    return complain(error.path1().string() + ": " + error.code().message(), ExitCode::kIoError);
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) {
      return complain(
          "out of memory; try smaller sizes: train.batch_size, task.length, model.*, mixer.*, or "
          "the option that needs this much");
    }
    const std::string failure = mixers::python_failure(error);
    if (!failure.empty()) return complain(failure);
    return complain(std::string("this is a bug in lra: ") + error.what(), ExitCode::kOurBug);
  }
  return run_with_tensors(argc, argv);
}

}  // namespace

int run_command(int argc, char** argv) {
  const int code = run_and_report(argc, argv);
  if (__llvm_profile_write_file) __llvm_profile_write_file();
  return code;
}

}  // namespace lra::cli
