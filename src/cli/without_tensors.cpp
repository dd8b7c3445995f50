// The program without LibTorch: in the place of src/compute and of what settings ask of tensors.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/revision.h"
#include "base/stop_flag.h"
#include "cli/compute.h"
#include "cli/program.h"
#include "mixers/python_layer.h"
#include "training/settings/fairness.h"

namespace lra {
namespace cli {
namespace {

int refuse_library(const std::string& library, const std::string& what) {
  std::fprintf(stderr, "lra: %s: %s; build or install the program again\n", library.c_str(),
               what.c_str());
  return static_cast<int>(ExitCode::kUserError);
}

// Threads of OpenMP wait for the next region by turning in a loop, for milliseconds unless told
// otherwise. Where another program wants a processor, those that turn take it from the one that all
// wait for (docs/speed.md). The library reads the variable when it is loaded, as it is by now, so
// this program begins again; but not where the library has bound this thread to a processor, from
// which the next one could not get away. Where it is not possible the program goes on.
void wait_for_threads_briefly(const std::string& program, char** argv) {
  for (const char* choice :
       {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
    if (std::getenv(choice) != nullptr) return;
  }
  ::setenv("GOMP_SPINCOUNT", "10000", 1);  // also in python/lra/_program.py
  ::execv(program.c_str(), argv);
}

}  // namespace

int run_with_tensors(int argc, char** argv) {
  stop_listening();  // the library has its own handlers of signals
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  wait_for_threads_briefly(program, argv);
  const std::string path = program.parent_path() / "liblra_python.so";
  // As if it had been linked: LibTorch's own libraries look for one another among global names.
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (!library) return refuse_library(path, std::string("cannot be loaded (") + ::dlerror() + ")");
  const auto revision =
      reinterpret_cast<decltype(&lra_library_revision)>(::dlsym(library, "lra_library_revision"));
  const auto run =
      reinterpret_cast<decltype(&lra_library_run)>(::dlsym(library, "lra_library_run"));
  if (!revision || !run || revision() != program_revision())
    return refuse_library(path, "is of another revision than this program");
  return run(argc, argv);
}

void need_tensors() { throw NeedsTensors(); }
void start_tensors(const std::string&, int) {}
std::string find_gpu(const std::string&, std::optional<int>) { throw NeedsTensors(); }
Provenance program_provenance(const CommonOptions&) { throw NeedsTensors(); }
ExitCode eval(const Program&, const EvalArguments&) { throw NeedsTensors(); }
ExitCode export_run(const Program&, const ExportArguments&) { throw NeedsTensors(); }
ExitCode run_mixer(const Program&, const MixerArguments&) { throw NeedsTensors(); }
ExitCode info(const Program&) { throw NeedsTensors(); }
ExitCode train(const Program&, const TrainArguments&, training::ChangedRun,
               const training::RunFolder&) {
  throw NeedsTensors();
}
RunRecord repeat(const Program&, const RepeatedRun&) { throw NeedsTensors(); }
std::optional<AnalysisRecord> analysis_of(const std::string&, const CommonOptions&,
                                          const AnalyzeArguments&, const std::string&) {
  throw NeedsTensors();
}
ExitCode measure_one(const BenchArguments&, const std::string&) { throw NeedsTensors(); }

}  // namespace cli

namespace mixers {
bool has_interpreter() { return false; }
PythonSource python_source(const std::string&) { throw cli::NeedsTensors(); }
std::vector<std::string> python_faults(const std::string&, bool, bool) {
  throw cli::NeedsTensors();
}
std::vector<PythonGroup> python_groups(const ConfigTable&, const LayerShape&) {
  throw cli::NeedsTensors();
}
}  // namespace mixers

namespace training {
int64_t count_parameters(const RunConfig&) { throw cli::NeedsTensors(); }
}  // namespace training

}  // namespace lra
