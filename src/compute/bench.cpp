// One measurement of lra bench.
#include <cstdio>
#include <iostream>

#include "analysis/efficiency.h"
#include "base/stop_flag.h"
#include "cli/compute.h"

namespace lra::cli {
namespace {

void print_line(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void wait_for_line() {
  print_line("ready");
  std::string line;
  if (std::getline(std::cin, line)) return;
  refuse("standard input", "ended before the last window", "a line for each");
}

void print_rate(double steps_per_s) { print_line(json_text({{"steps_per_s", steps_per_s}})); }

}  // namespace

// The child's part: one measurement, printed as JSON. Nothing of it is worth saving, so a request
// to stop ends it at once. For a script that measures another program in turn, --in-turn prints
// "ready" before each window, which starts when a line was read, and its speed after it.
ExitCode measure_one(const BenchArguments& a, const std::string& device) {
  end_at_first_signal();
  analysis::WindowHooks hooks;
  if (a.in_turn) hooks = {.before = wait_for_line, .after = print_rate};
  const auto result =
      analysis::measure(config_of(a, a.one, a.lengths.at(0)), {.device = at::Device(device),
                                                               .train = a.mode == "train",
                                                               .batch = a.batch,
                                                               .windows = a.windows,
                                                               .window_seconds = a.window_seconds,
                                                               .whole_steps = a.whole_steps,
                                                               .hooks = hooks,
                                                               .data_root = a.data,
                                                               .real_batch = a.real_batch});
  std::fputs(to_json(result).c_str(), stdout);
  return ExitCode::kDone;
}

}  // namespace lra::cli
