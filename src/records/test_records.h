// Run records for the tests of this room, built in code.
#pragma once

#include <string>

#include "records/run_identity.h"
#include "records/run_record.h"

namespace lra {

// A finished run with a test accuracy in percent on `num_examples` examples.
inline RunRecord finished_run(const std::string& task, const std::string& model, double percent,
                              uint64_t seed = 0, int64_t num_examples = 2000) {
  RunRecord run;
  run.status = RunStatus::kDone;
  run.task = run.task_title = task;
  run.task_version = 1;
  run.model = run.model_title = model;
  run.preset = "paper";
  run.seed = seed;
  run.validation = "own";
  run.checkpoint = "last";
  run.division = "apples-to-apples";
  run.published_setting = true;
  run.data_hash = "data-of-" + task;
  run.fingerprint = task + "/" + model + "/" + std::to_string(seed);
  run.steps = run.planned_steps = 5000;
  run.preset_steps = 5000;
  run.test_split_examples = num_examples;
  run.train_seconds = 100;
  run.total_seconds = 110;
  run.train_tokens_per_s = 10000;
  run.peak_resident_bytes = 1500000000;
  run.test = Evaluation{5000, 1.5, percent / 100, num_examples};
  run.provenance.git_revision = "0123456789abcdef0123456789abcdef01234567";
  run.provenance.processor = "Test processor";
  run.provenance.device = "cpu";
  run.provenance.isa = "avx512";
  run.provenance.threads = 2;
  run.provenance.started_utc = "2026-01-01T00:00:00Z";
  run.provenance.finished_utc = "2026-01-01T01:00:00Z";
  return run;
}

// A consistent record, settings and hashes included.
inline RunRecord honest_run(const std::string& model = "performer") {
  RunRecord run = finished_run("text", model, 65);
  ConfigTable& settings = run.config.table("run");
  settings.set("task", ConfigValue{std::string("text"), ""});
  settings.set("model", ConfigValue{model, ""});
  settings.set("preset", ConfigValue{std::string("paper"), ""});
  settings.set("seed", ConfigValue{int64_t{0}, ""});
  ConfigTable& train = run.config.table("train");
  train.set("batch_size", ConfigValue{int64_t{32}, ""});
  train.set("test_checkpoint", ConfigValue{std::string("last"), ""});
  run.checkpoint = "last";
  run.weights_hash = std::string(32, 'a');
  run.baselines = {{"majority", 0.5}};
  run.data_examples = SplitSizes{.train = 8000, .val = 1000, .test = 2000};
  run.examples = 32 * run.steps;
  run.tokens = static_cast<int64_t>(run.train_tokens_per_s * run.train_seconds);
  run.config_hash = config_hash(run.config);
  run.fingerprint = run_fingerprint(run.config_hash, run.data_hash, run.task_version);
  run.val_curve = {{2500, 1, 0.5, 1000}, {5000, 1, 0.625, 1000}};
  run.best_val = run.val = run.val_curve[1];
  return run;
}

inline RunRecord lost_run(const std::string& task, const std::string& model, RunStatus status,
                          uint64_t seed = 0) {
  RunRecord run = finished_run(task, model, 0, seed);
  run.status = status;
  run.test.reset();
  run.steps = 120;
  return run;
}

// A measurement of training on Text, with batches of 32.
inline RunRecord measured(const std::string& model, int64_t length, double steps_per_s) {
  RunRecord record = finished_run("text", model, 0);
  record.kind = "bench";
  record.test.reset();
  record.measurements = {{.mode = "train",
                          .dtype = "fp32",
                          .length = length,
                          .batch = 32,
                          .steps_per_s = steps_per_s,
                          .peak_tensor_bytes = 1000,
                          .model_flops = 1,
                          .gemm_flops_per_s = 1000}};
  return record;
}

}  // namespace lra
