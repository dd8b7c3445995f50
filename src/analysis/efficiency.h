// Speed and memory of one model at one length: the quantities of the paper's Tables 2 and 4, on
// this machine.
//
// One call per process, so that peak memory belongs to that measurement only. "Compute only" uses
// random tokens; "with pipeline" reads, shuffles and pads batches of the task's data, of the same
// length, while the steps run. A real batch is measured as training computes it, with examples of
// their own lengths.
//
// Goals of the room `analysis`: the measurements of the paper and of its successors on trained runs
// and on machines, with stated uncertainty. Non-goals: to change a run, to judge what a figure
// means.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/timed_windows.h"
#include "records/run_record.h"
#include "training/settings/run_config.h"

namespace lra::analysis {

struct EfficiencyOptions {
  at::Device device = at::kCPU;  // its memory is that of the tensors
  bool train = true;             // forward, backward and update; else forward only
  int64_t batch = 32;
  int64_t warmup_steps = 1;   // not timed
  int64_t windows = 5;        // timed windows; the median counts
  double window_seconds = 1;  // a window has as many steps as it takes to fill this, at least one
  bool whole_steps = false;   // however long they are; else as measure() says
  WindowHooks hooks = {};     // around the windows without pipeline
  std::optional<std::string> data_root = {};  // measures with pipeline too
  // Measures the first batch of training, with examples of all lengths, in whole steps, instead of
  // all this; needs data_root.
  bool real_batch = false;
};

// Measures the model and task of `run` (its length is the one measured). A step ends when the
// device has computed it. A step longer than five windows is timed in parts: as a step of a half, a
// quarter or an eighth of its sequences, at least four of them, which makes it up to a tenth
// faster; its warm-up is whole. Peak memory of the process, main memory only, counts from the start
// of the process; that of tensors from the making of the model to the last warm-up step. Both end
// before the pipeline and the matrix product that the model's operations are compared with are
// measured.
Measurement measure(const training::RunConfig& run, const EfficiencyOptions& options);

}  // namespace lra::analysis
