// The work of commands with tensors (src/compute). The program `lra` is linked without it and
// without LibTorch, whose loading takes longer than a short command: there, without_tensors.cpp is
// in its place, whose functions throw NeedsTensors, and the same command starts again in the
// library of everything, liblra_python.so.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "records/analysis_record.h"
#include "training/settings/stored_run.h"

namespace lra::cli {

class NeedsTensors : public std::exception {};

// Does nothing in a program with tensors. Commands call it when their arguments are checked, before
// they write anything.
void need_tensors();
// Runs the command again in the library. Returns its exit code, or that of a mistake if there is no
// library of this revision.
int run_with_tensors(int argc, char** argv);

// Before the first tensor. `threads`: of LibTorch.
void start_tensors(const std::string& device, int threads);
// find_device() of "cuda" and "cuda:NUMBER".
std::string find_gpu(const std::string& text, std::optional<int> number);
// Number and model of the GPUs, or that there is none, for people. For `info` alone.
std::string gpus_found();
Provenance program_provenance(const CommonOptions& common);

struct EvalArguments {
  std::string run, split = "test", data;
  training::WeightsChoice weights;
  bool other_data = false;
  std::string predictions;  // a file to write; empty: none
  std::vector<std::string> sets;
  ConfigTable task;  // the whole [task] with the sets; empty without sets
};
ExitCode eval(const Program& program, const EvalArguments& a);

struct ExportArguments {
  std::string run, out;
  training::WeightsChoice weights;
};
ExitCode export_run(const Program& program, const ExportArguments& a);

struct MixerArguments {
  std::string name, in, out;
  std::vector<std::string> sets;
  ConfigTable settings;  // [mixer], of the sets
  std::optional<int64_t> seed;
  int64_t heads = 1, head_dim = 0, max_length = 0;
};
ExitCode run_mixer(const Program& program, const MixerArguments& a);

ExitCode info(const Program& program);

struct TrainArguments {
  std::string task, model, preset = "small", data, out, resume;
  uint64_t seed = 0;
  std::vector<std::string> sets;
  std::string profile;  // a file to write; empty: none
  int64_t profile_steps = 5;
  int64_t histogram_every = 0;
  int64_t rank_timeout_s = 600;
  std::string rank_backend = "gloo";
  int64_t memory_limit = INT64_MAX;
  int64_t stop_after = INT64_MAX;
  bool no_test = false;
  bool go_on = false;
  std::string init_from;
  bool init_partial = false;
  std::vector<std::string> accept;
};
// Trains with the settings that the arguments ask for, in this folder.
ExitCode train(const Program& program, const TrainArguments& a, training::ChangedRun wanted,
               const training::RunFolder& folder);

// A recorded run again: its record.
struct RepeatedRun {
  training::RunConfig config;
  training::RunFolder folder;
  std::string data_root, init_from;
  std::vector<std::string> accept;
  int64_t time_ends_after = 0, stop_after = INT64_MAX;
};
RunRecord repeat(const Program& program, const RepeatedRun& run);

struct AnalyzeArguments {
  std::vector<std::string> runs;
  training::WeightsChoice weights;
  std::string split, data, thresholds;  // thresholds: empty for those of default_thresholds()
  bool other_data = false;
  int64_t samples = 1000, examples = 0, count = 4, gradients = 50;
  std::vector<int64_t> indices, fields, lengths;
  std::string to = "pathx";
  std::vector<std::string> positions = {"stretched", "continued"};
};
// The analysis `kind` of one run folder; writes only pictures and matrices, next to the future
// record. Returns nullopt if a stop was requested.
std::optional<AnalysisRecord> analysis_of(const std::string& kind, const CommonOptions& common,
                                          const AnalyzeArguments& a, const std::string& folder);
// A short table for people.
std::string analysis_text(const AnalysisRecord& record, const std::string& folder);
// The confusion matrix with recall and precision, and the accuracy by each property with its 95 %
// interval.
std::string breakdown_text(const BreakdownResult& breakdown);

struct BenchArguments {
  std::string task = "text", preset = "release", mode = "train", dtype = "fp32", out, one;
  std::vector<std::string> models, sets;
  std::vector<int64_t> lengths;  // empty: the default of the task
  int64_t batch = 32, windows = 5;
  double window_seconds = 1;
  std::optional<std::string> data;
  int table = 0;
  std::vector<CLI::Option*> choices;  // the options that say what is measured
  bool whole_steps = false, in_turn = false, replace = false, real_batch = false;
  std::string busy;                    // what other programs did when the measurements began
  std::vector<CheckFinding> findings;  // about the data
};
// The settings of a measurement. Images have their own length, regardless of `length`; 0 leaves it
// to the preset.
training::RunConfig config_of(const BenchArguments& a, const std::string& model, int64_t length);
// The folder in a.out with the record of a model's measurements.
std::string record_folder(const BenchArguments& a, const std::string& model);
// The words of a command that measures these models at these lengths, in training and float32.
std::vector<std::string> bench_words(const BenchArguments& a, const CommonOptions& common);
// The child's part of lra bench: one measurement, printed as JSON.
ExitCode measure_one(const BenchArguments& a, const std::string& device);

}  // namespace lra::cli
