// A run that can begin: settings, data, model and record, before anything is written.
#pragma once

#include <memory>
#include <optional>

#include "models/model.h"
#include "records/run_record.h"
#include "tasks/task.h"
#include "training/loop/step_profiler.h"
#include "training/ranks/ranks.h"
#include "training/run/tensor_memory.h"
#include "training/settings/run_config.h"
#include "training/settings/run_folder.h"

namespace lra::training {

struct TrainOptions {
  std::string data_root;
  // Device of the model, its gradients and moments. Not part of a run's identity: a resume may name
  // another one.
  at::Device device = at::kCPU;
  bool resume = false;
  // Differences between the settings of a resumed run and those of its steps so far (with_changes);
  // empty if there are none.
  std::string change = {};
  // A model.safetensors whose weights a new run begins with (empty: they are drawn), and whether
  // tensors may lack a counterpart in it.
  std::string init_from = {};
  bool init_partial = false;
  // Names of checks (checks/check_table.h) whose warnings about the data of a new run are accepted.
  std::vector<std::string> accept = {};
  bool quiet = false;
  // Bytes that train.memory_check may count on in addition to those of this process, although more
  // are free: the share that other runs on this machine leave it.
  int64_t memory_limit = INT64_MAX;
  Provenance provenance;
  // The step after which train.max_seconds count as over, regardless of the clock: the end of a run
  // that is reproduced. 0: the clock decides.
  int64_t time_ends_after = 0;
  // The step after which the run stops as if it had been asked to; its schedule does not change.
  int64_t stop_after = INT64_MAX;
  // Stops after the last validation: the test is left to whoever resumes the run.
  bool stop_before_test = false;
  // Additional output, on request; it does not change the run.
  int64_t histogram_every = 0;  // steps between histograms for TensorBoard; 0: none
  ProfileOptions profile = {};
};

struct PreparedRun {
  RunConfig config;  // train.steps as the record plans them
  RunFolder folder;
  TrainOptions options;  // of this rank
  std::unique_ptr<tasks::Task> task = nullptr;
  Dataset dataset = {};
  TaskShape shape = {};
  std::unique_ptr<TensorMemory> device_memory = nullptr;  // of a device other than the CPU
  std::unique_ptr<models::Model> model = nullptr;
  RunRecord record = {};
  std::optional<RunRecord> before = {};  // of a resumed run: its record as it was found
};

// Imports or generates data where that is due. Throws lra::Error for a split without examples, for
// weights that do not fit into memory (train.memory_check), for a batch that the ranks cannot
// share, and when they have other settings, data, programs or kernels than each other. Every rank
// calls this with the same arguments.
PreparedRun prepare_run(RunConfig config, RunFolder folder, TrainOptions options,
                        Ranks& ranks = one_rank());

// Bytes of main memory that this rank may take.
int64_t memory_left(const TrainOptions& options, const Ranks& ranks);

}  // namespace lra::training
