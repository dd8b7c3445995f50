#include "training/loop/step_profiler.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/overwrite.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;
namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

constexpr int64_t kWarmupSteps = 2;

std::string partial(const std::string& path) { return path + ".partial"; }

profiler::ProfilerConfig profiler_config() {
  return profiler::ProfilerConfig(torch::profiler::impl::ProfilerState::KINETO,
                                  /*report_input_shapes=*/true);
}

// The library's writer reports no errors: a trace that was cut short lacks its last brace.
bool is_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  constexpr std::streamoff kTail = 16;
  file.seekg(-kTail, std::ios::end);
  std::string tail(kTail, '\0');
  file.read(tail.data(), kTail);
  if (!file) return false;
  const size_t last = tail.find_last_not_of(" \t\r\n");
  return last != std::string::npos && tail[last] == '}';
}

}  // namespace

StepProfiler::StepProfiler(ProfileOptions options) : options_(std::move(options)) {
  if (options_.path.empty()) return;
  // Its marks of stages would go to standard error.
  ::setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0);
  if (fs::is_directory(options_.path)) {
    throw Error({.where = options_.path,
                 .what = "is a folder",
                 .expected = "a file for the trace",
                 .advice = "name another file with --profile"});
  }
  refuse_to_overwrite(options_.path, trace_output(), "--profile");
  const std::string folder = folder_of(options_.path);
  if (::access(folder.c_str(), W_OK) == 0) return;
  throw Error({.where = options_.path,
               .what = std::string("its folder cannot be written: ") + std::strerror(errno),
               .expected = "a folder for the trace",
               .advice = "make the folder, or name another file with --profile"});
}

StepProfiler::~StepProfiler() {
  if (recording_) (void)profiler::disableProfiler();
}

std::string StepProfiler::next_step() {
  if (options_.path.empty()) return "";
  ++steps_seen_;
  if (recording_ && steps_seen_ > kWarmupSteps + options_.num_steps) return save();
  if (steps_seen_ == kWarmupSteps + 1) {
    std::set<ActivityType> activities = {ActivityType::CPU};
    if (at::hasCUDA()) activities.insert(ActivityType::CUDA);  // kernels, as the driver timed them
    profiler::prepareProfiler(profiler_config(), activities);
    profiler::enableProfiler(profiler_config(), activities);
    recording_ = true;
  }
  return "";
}

std::string StepProfiler::finish() {
  if (recording_) return save();
  if (options_.path.empty() || steps_seen_ > kWarmupSteps) return "";
  return "no trace: the run ended before its third step";
}

std::string StepProfiler::save() {
  recording_ = false;
  const std::string unfinished = partial(options_.path);
  profiler::disableProfiler()->save(unfinished);
  if (!is_whole(unfinished)) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    return "no trace: " + options_.path + " cannot be written";
  }
  std::error_code problem;
  fs::rename(unfinished, options_.path, problem);
  if (problem) return "no trace: " + options_.path + ": " + problem.message();
  return "";
}

}  // namespace lra::training
