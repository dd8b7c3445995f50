// First step of `lra train`, without LibTorch: finds, makes or waits for the data of a task.
//
// Usage: prepare_once TASK ROOT [KEY=VALUE...] (settings of the task). Prints the data's hash.
#include <cstdio>
#include <exception>
#include <string>

#include "base/stop_flag.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/prepare_data.h"

namespace {

int run(int argc, char** argv) {
  const auto& spec = lra::tasks::find_task(argv[1]);
  std::string settings;
  for (int i = 3; i < argc; ++i) settings += std::string(argv[i]) + "\n";
  const auto task = spec.make(lra::parse_toml(settings, "the command line"));
  const auto data = lra::tasks::prepare_data(spec, *task, argv[2], true);
  std::printf("%s\n", data.hash().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: prepare_once TASK ROOT [KEY=VALUE...]\n");
    return 2;
  }
  try {
    lra::install_stop_handlers(lra::StartedBy::kUser);
    return run(argc, argv);
  } catch (const lra::Error& error) {
    std::fprintf(stderr, "prepare_once: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
